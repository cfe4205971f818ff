// The Keys view: keys with their limits and budgets, and routes with their health.
import { html, useState, useEffect, useStore, Button, CopyButton, Dialog, Empty, Loading, failed, toast } from './ui.js';
import { ask } from './api.js';
import { gateway } from './state.js';
import { Confirm } from './dialogs.js';
import { compact, cost, count, exact, moment, plural, seconds, when } from './format.js';

export function KeysAndRoutes() {
  const { info } = useStore(gateway);
  if (!info) return html`<${Loading} what="keys and routes" />`;
  return html`<div class="view scrolls"><div class="page-column"><h1>Keys and routes</h1><${Keys} info=${info} /><${Routes} /></div></div>`;
}

function useLoaded(path) {
  const [found, setFound] = useState(null);
  const load = () => path && ask(path).then(setFound).catch((error) => { failed(error); setFound({}); });
  useEffect(() => { load(); }, [path]);
  return [found, load];
}

function Meter({ budget }) {
  const [used, amount] = [Number(budget.used ?? 0), Number(budget.amount)];
  const share = amount > 0 ? used / amount : 1;
  const show = budget.kind === 'cost' ? cost : compact;
  const text = `${show(used)} of ${show(amount)} ${budget.kind === 'cost' ? '' : budget.kind} ${budget.period === 'total' ? 'in total' : `per ${budget.period}`}`;
  return html`<div class="meter"><div class="row"><span>${text}</span><span class="muted">${Math.round(share * 100)} %</span></div>
    <div class="track" role="meter" aria-label=${text} aria-valuemin="0" aria-valuemax=${amount} aria-valuenow=${Math.min(used, amount)}><div class=${`fill ${share >= 1 ? 'over' : share > 0.8 ? 'near' : ''}`} style=${{ width: `${Math.min(100, share * 100)}%` }}></div></div></div>`;
}

// --- keys

function Keys({ info }) {
  const [found, load] = useLoaded(info.has_keys ? 'keys' : null);
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const create = () => setDialog(html`<${Create} onClose=${close} onMade=${(made) => { load(); setDialog(html`<${Secret} made=${made} onClose=${close} />`); }} />`);
  const revoke = (key) => setDialog(html`<${Confirm} title="Revoke this key?" action="Revoke" onClose=${close} onConfirm=${async () => { await ask(`keys/${encodeURIComponent(key.id)}/revoke`, { method: 'POST', body: {} }); toast('Key revoked.'); load(); }}>
    <p>New requests with <strong>${key.name}</strong> will be rejected, on all workers within a few seconds. The key’s record and usage are kept. This can’t be undone.</p></${Confirm}>`);
  return html`<section aria-labelledby="keys-title"><div class="section-head"><h2 id="keys-title">Keys</h2>${info.has_keys && html`<${Button} kind="primary" icon="plus" text="New key" onClick=${create} />`}</div>
    ${!info.has_keys ? html`<${Empty} title="No keys">This gateway has no key store. Set “keys” in its configuration to create keys with limits and budgets.</${Empty}>`
      : !found ? html`<${Loading} what="keys" />`
      : html`<ul class="cards">${(found.keys ?? []).map((key) => html`<${Key} key=${key.id} one=${key} onRevoke=${() => revoke(key)} onUsage=${() => setDialog(html`<${Usage} one=${key} onClose=${close} />`)} />`)}</ul>`}
    ${dialog}</section>`;
}

function stateOf(one) {
  if (one.revoked_at) return ['bad', `revoked ${when(one.revoked_at)}`];
  const end = moment(one.expires_at);
  if (end && end < Date.now()) return ['bad', 'expired'];
  return end ? ['warn', `expires ${when(one.expires_at)}`] : ['good', 'active'];
}

function Key({ one, onRevoke, onUsage }) {
  const [kind, state] = stateOf(one);
  const limits = [one.requests_per_minute && `${count(one.requests_per_minute)} requests per minute`, one.tokens_per_minute && `${compact(one.tokens_per_minute)} tokens per minute`, one.max_concurrent && `${count(one.max_concurrent)} concurrent`].filter(Boolean);
  return html`<li class=${`card ${one.revoked_at ? 'revoked' : ''}`}><header><h3 class="clip grow">${one.name || one.id}</h3>${one.is_admin && html`<span class="tag">admin</span>`}<span class=${`tag ${kind}`} title=${exact(one.revoked_at ?? one.expires_at)}>${state}</span></header>
    <p class="muted"><code>${one.id}</code> · created ${when(one.created_at)}</p>
    <p class="muted">${one.models?.length ? `Models: ${one.models.join(', ')}` : 'All models'}${limits.length ? ` · ${limits.join(' · ')}` : ''}</p>
    ${(one.budgets ?? []).map((budget) => html`<${Meter} budget=${budget} />`)}
    <footer><${Button} text="Usage" label=${`Usage of ${one.name}`} onClick=${onUsage} />${!one.revoked_at && html`<${Button} text="Revoke" label=${`Revoke ${one.name}`} onClick=${onRevoke} />`}</footer></li>`;
}

function Usage({ one, onClose }) {
  const [found] = useLoaded(`keys/${encodeURIComponent(one.id)}/usage`);
  return html`<${Dialog} wide title=${`Usage of ${one.name}`} onClose=${onClose}>${!found ? html`<${Loading} what="usage" />` : html`<div class="table" tabindex="0" role="region" aria-label="Usage by model"><table class="plain-table">
    <thead><tr><th scope="col">Model</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Tokens in</th><th scope="col" class="number">Tokens out</th><th scope="col" class="number">Cost</th></tr></thead>
    <tbody>${(found.items ?? []).map((item) => html`<tr><th scope="row">${item.model}</th><td class="number">${count(item.requests)}</td><td class="number">${compact(item.tokens_in)}</td><td class="number">${compact(item.tokens_out)}</td><td class="number">${cost(item.cost)}</td></tr>`)}</tbody></table></div>
    ${!found.items?.length && html`<p class="muted">No usage yet.</p>`}`}</${Dialog}>`;
}

const BLANK = { name: '', models: '', requests_per_minute: '', tokens_per_minute: '', max_concurrent: '', amount: '', kind: 'cost', period: 'month', expires_at: '', is_admin: false };
const whole = (text) => (text === '' ? null : Math.floor(Number(text)));

function Create({ onClose, onMade }) {
  const [form, setForm] = useState(BLANK);
  const [error, setError] = useState(null);
  const field = (name) => ({ value: form[name], onInput: (event) => setForm({ ...form, [name]: event.target.value }) });
  const create = () => ask('keys', { method: 'POST', body: {
    name: form.name.trim(), models: form.models.split(',').map((one) => one.trim()).filter(Boolean), requests_per_minute: whole(form.requests_per_minute), tokens_per_minute: whole(form.tokens_per_minute), max_concurrent: whole(form.max_concurrent),
    budgets: form.amount === '' ? [] : [{ kind: form.kind, amount: form.amount, period: form.period }], expires_at: form.expires_at ? new Date(`${form.expires_at}T23:59:59`).getTime() / 1000 : null, is_admin: form.is_admin } }).then(onMade).catch((problem) => setError(problem.message));
  const choice = (name, values) => html`<select value=${form[name]} onChange=${(event) => setForm({ ...form, [name]: event.target.value })}>${values.map(([value, text]) => html`<option value=${value} selected=${value === form[name]}>${text}</option>`)}</select>`;
  return html`<${Dialog} title="New key" onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="primary" text="Create" disabled=${!form.name.trim()} onClick=${create} />`}>
    ${error && html`<p class="notice bad" role="alert">${error}</p>`}
    <div class="form-grid">
      <label class="field full"><span>Name</span><input autofocus maxlength="100" ...${field('name')} /></label>
      <label class="field full"><span>Allowed models (comma-separated names or patterns with *; leave empty to allow all)</span><input placeholder="claude-*, gpt-5-mini" ...${field('models')} /></label>
      <label class="field"><span>Requests per minute</span><input type="number" min="1" placeholder="no limit" ...${field('requests_per_minute')} /></label>
      <label class="field"><span>Tokens per minute</span><input type="number" min="1" placeholder="no limit" ...${field('tokens_per_minute')} /></label>
      <label class="field"><span>Concurrent requests</span><input type="number" min="1" placeholder="no limit" ...${field('max_concurrent')} /></label>
      <label class="field"><span>Expires on</span><input type="date" ...${field('expires_at')} /></label>
      <label class="field"><span>Budget</span><input type="number" min="0" step="any" placeholder="none" ...${field('amount')} /></label>
      <div class="row"><label class="field grow"><span>Unit</span>${choice('kind', [['cost', 'US$'], ['tokens', 'tokens']])}</label><label class="field grow"><span>Period</span>${choice('period', [['day', 'day'], ['month', 'month'], ['total', 'total']])}</label></div>
      <label class="check full"><input type="checkbox" checked=${form.is_admin} onChange=${(event) => setForm({ ...form, is_admin: event.target.checked })} /><span>Admin: can use this page and manage keys</span></label>
    </div></${Dialog}>`;
}

function Secret({ made, onClose }) {
  return html`<${Dialog} title="Key created" onClose=${onClose} actions=${html`<${Button} kind="primary" text="Done" onClick=${onClose} />`}>
    <p>Copy the key now: it won’t be shown again. The gateway stores only a hash of it.</p>
    <div class="secret"><code>${made.secret}</code><${CopyButton} text=${made.secret} label="Copy the key" /></div></${Dialog}>`;
}

// --- routes

function Routes() {
  const [found, load] = useLoaded('routes');
  return html`<section aria-labelledby="routes-title"><div class="section-head"><h2 id="routes-title">Routes</h2><${Button} kind="plain" icon="retry" label="Reload routes" onClick=${load} /></div>
    ${!found ? html`<${Loading} what="routes" />` : !found.routes?.length ? html`<p class="muted">No routes are configured. Clients name the provider with the model, as in “anthropic:claude-…”.</p>`
      : html`<ul class="cards">${found.routes.map((route) => html`<${Route} key=${route.name} route=${route} />`)}</ul>`}</section>`;
}

function Route({ route }) {
  const well = route.hops.filter((hop) => hop.healthy !== false).length;
  const [kind, text] = well === route.hops.length ? ['good', 'healthy'] : well ? ['warn', 'degraded'] : ['bad', 'down'];
  return html`<li class="card"><header><h3 class="clip grow">${route.name || route.model}</h3><span class=${`tag ${kind}`}>${text}</span></header>
    <p class="muted">Model <code>${route.model}</code>${route.requests !== undefined && route.requests !== null ? ` · ${plural(route.requests, 'request')}, ${plural(route.errors ?? 0, 'error')}, p50 ${seconds(route.p50)}` : ''}</p>
    <ol class="hops" aria-label="Hops, in order">${route.hops.map((hop) => html`<li><span><span class=${`dot ${hop.healthy === false ? 'bad' : ''}`}></span><span class="hidden">${hop.healthy === false ? 'failing' : 'healthy'}</span></span><span>${hop.place}${hop.model ? html` · <code>${hop.model}</code>` : ''}</span><span class="muted">${hop.weight > 1 ? `weight ${hop.weight}` : hop.provider !== hop.place ? hop.provider : ''}</span>
      ${hop.unreachable && html`<span class="muted why">Does not answer when asked for its models: ${hop.unreachable}</span>`}
      ${hop.healthy === false && hop.failures > 0 && html`<span class="muted why">${plural(hop.failures, 'failure')}${hop.last_error ? `, last: ${hop.last_error}` : ''}${hop.resting_until ? `; lowest priority until ${when(hop.resting_until)}` : ''}</span>`}</li>`)}</ol>
    ${(route.budgets ?? []).map((budget) => html`<${Meter} budget=${budget} />`)}</li>`;
}
