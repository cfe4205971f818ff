// The “What was sent” drawer: the request body behind a response, with losses and repairs.
import { html, useState, useEffect, useMemo, Dialog, Loading, CopyButton } from './ui.js';
import { askExactly } from './api.js';
import { JsonLines, Finding, findingsOf, lines, placed } from './json_view.js';
import { plural } from './format.js';

export function SentDrawer({ conversation, view, onClose }) {
  const [sent, setSent] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    askExactly(`conversations/${encodeURIComponent(conversation)}/sent`, { query: { message: view.id } }).then(setSent).catch((problem) => setError(problem.message));
  }, [view.id]);
  return html`<${Dialog} drawer title="What was sent" onClose=${onClose}>
    ${error && html`<p class="notice bad">${error}</p>`}
    ${!sent && !error && html`<${Loading} what="the request" />`}
    ${sent && html`<${Sent} sent=${sent} view=${view} />`}
  </${Dialog}>`;
}

function Sent({ sent, view }) {
  const findings = useMemo(() => findingsOf(sent), [sent]);
  const all = useMemo(() => lines(sent.body), [sent]);
  const marks = useMemo(() => placed(findings.filter((one) => one.wire_path), all), [findings, all]);
  const loose = findings.filter((one) => !one.wire_path);
  const omitted = Array.isArray(sent.omitted) ? sent.omitted.length : Number(sent.omitted) || 0;
  return html`<dl class="facts-list"><dt>Model</dt><dd>${view.model ?? '–'}</dd><dt>Dialect</dt><dd>${sent.dialect}</dd>
      <dt>Target</dt><dd>${sent.target}</dd><dt>Path</dt><dd><code>${sent.path}</code></dd>
      <dt>Changes</dt><dd>${plural(sent.losses?.length ?? 0, 'loss', 'losses')}, ${plural(sent.repairs?.length ?? 0, 'repair')}, ${plural(omitted, 'message')} omitted</dd></dl>
    ${loose.map((finding) => html`<${Finding} finding=${finding} />`)}
    <div class="labelled"><span>Body</span><${CopyButton} text=${() => JSON.stringify(sent.body, null, 2)} label="Copy as JSON" showText=${true} /></div>
    <${JsonLines} all=${all} marks=${marks} />`;
}
