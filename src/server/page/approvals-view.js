import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Lists calls that may run without a question, loaded when opened; each can be taken back. */
export class ApprovalsView extends Component {
  state = { grants: [], problem: '', isLoaded: false };

  /** Runs a change, if any, then reloads the list. */
  async show(change) {
    try {
      await change?.();
      const { grants } = await call('approvals');
      this.setState({ grants, problem: '', isLoaded: true });
    } catch {
      this.setState({ problem: "That didn't work. Please try again in a moment." });
    }
  }

  render(_props, { grants, problem, isLoaded }) {
    return html`<details class="listing approvals" onToggle=${(event) => event.target.open && this.show()}>
      <summary>Allowed without asking</summary>
      ${isLoaded && grants.length === 0 && html`<p class="detail">Nothing.</p>`}
      <ul>${grants.map(
        (grant) =>
          html`<${GrantLine} key=${grant.id} grant=${grant} onRevoke=${() => this.show(() => call('approvals/revoke', { id: grant.id }))} />`,
      )}</ul>
      <p class="problem" role="alert">${problem}</p>
    </details>`;
  }
}

function GrantLine({ grant, onRevoke }) {
  const { tool, shown, laneKey, grantedBy, expiresAt } = grant;
  return html`<li>
    <span class="name">${tool}</span>
    <button class="link" onClick=${onRevoke} aria-label=${`Ask again about ${tool}: ${shown}`}>Ask again</button>
    <pre class="shown">${shown}</pre>
    <span class="detail">in ${laneKey}, by ${grantedBy}, until ${dayText(expiresAt)}</span>
  </li>`;
}

function dayText(at) {
  return new Date(at).toLocaleDateString([], { dateStyle: 'medium' });
}
