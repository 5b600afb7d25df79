import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Lists the signed-in browsers, loaded when opened; each can be signed out. */
export class SignInsView extends Component {
  state = { signIns: [], problem: '' };

  /** Runs a change, if any, then reloads the list. */
  async show(change) {
    try {
      await change?.();
      const { signIns } = await call('sign-ins');
      this.setState({ signIns, problem: '' });
    } catch {
      this.setState({ problem: "That didn't work. Please try again in a moment." });
    }
  }

  render(_props, { signIns, problem }) {
    const hasOthers = signIns.some(({ isThis }) => !isThis);
    return html`<details class="listing sign-ins" onToggle=${(event) => event.target.open && this.show()}>
      <summary>Signed-in browsers</summary>
      <ul>${signIns.map(
        (signIn) =>
          html`<${SignInLine} key=${signIn.id} signIn=${signIn} onEnd=${() => this.show(() => call('sign-ins/end', { id: signIn.id }))} />`,
      )}</ul>
      <p class="problem" role="alert">${problem}</p>
      ${
        hasOthers &&
        html`<button class="quiet" onClick=${() => this.show(() => call('sign-ins/end', { others: true }))}>Sign out all others</button>`
      }
    </details>`;
  }
}

function SignInLine({ signIn, onEnd }) {
  const { browser, createdAt, lastSeenAt, isThis } = signIn;
  return html`<li>
    <span class="name">${browser}</span>
    ${
      isThis
        ? html`<span class="word">this browser</span>`
        : html`<button class="link" onClick=${onEnd} aria-label=${`Sign out: ${browser}`}>Sign out</button>`
    }
    <span class="detail">since ${timeText(createdAt)}, last seen ${timeText(lastSeenAt)}</span>
  </li>`;
}

function timeText(at) {
  return new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
