import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);
const scopes = [
  ['chat', 'talk to agents'],
  ['read', 'see chats and their state'],
  ['operate', 'change what runs and waits'],
];

/** Lists the tokens of programs, loaded when opened; creates and revokes them. A new secret is shown once. */
export class TokensView extends Component {
  state = { tokens: [], secret: '', problem: '' };

  /** Runs a change, if any, then reloads the list. */
  async show(change) {
    try {
      const created = await change?.();
      const { tokens } = await call('tokens');
      this.setState({ tokens, secret: created?.secret ?? '', problem: '' });
    } catch (error) {
      this.setState({ problem: error.text ?? "That didn't work. Please try again in a moment." });
    }
  }

  create(event) {
    event.preventDefault();
    const form = new FormData(event.target);
    const input = { name: String(form.get('name')).trim(), scopes: form.getAll('scope') };
    if (input.scopes.length === 0) return this.setState({ problem: 'Choose what it may do.' });
    return this.show(() => call('tokens/create', input));
  }

  render(_props, { tokens, secret, problem }) {
    const live = tokens.filter(({ revokedAt }) => revokedAt === undefined);
    return html`<details class="listing tokens" onToggle=${(event) => event.target.open && this.show()}>
      <summary>Tokens for programs</summary>
      <ul>${live.map(
        (token) =>
          html`<${TokenLine} key=${token.id} token=${token} onRevoke=${() => this.show(() => call('tokens/revoke', { which: token.id }))} />`,
      )}</ul>
      ${secret !== '' && html`<p role="status">Copy it now: it isn't shown again. <code>${secret}</code></p>`}
      <p class="problem" role="alert">${problem}</p>
      <form onSubmit=${(event) => this.create(event)}>
        <label>Name <input name="name" required maxlength="60" autocomplete="off" /></label>
        ${scopes.map(
          ([scope, does]) =>
            html`<label><input type="checkbox" name="scope" value=${scope} /> ${scope}: ${does}</label>`,
        )}
        <button class="quiet">Create token</button>
      </form>
    </details>`;
  }
}

function TokenLine({ token, onRevoke }) {
  const { name, scopes: may, lastUsedAt, expiresAt } = token;
  return html`<li>
    <span class="name">${name}</span>
    <button class="link" onClick=${onRevoke} aria-label=${`Revoke ${name}`}>Revoke</button>
    <span class="detail">${may.join(', ')}; ${lastUsedAt === undefined ? 'never used' : `last used ${timeText(lastUsedAt)}`}${expiryText(expiresAt)}</span>
  </li>`;
}

function expiryText(at) {
  if (at === undefined) return '';
  return at <= Date.now() ? '; expired' : `; expires ${timeText(at)}`;
}

function timeText(at) {
  return new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
