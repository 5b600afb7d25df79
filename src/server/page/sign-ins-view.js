import { endOtherSignIns, endSignIn, fetchSignIns } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** The browsers that are signed in, asked for when the list is opened, and the way to sign each out. */
export class SignInsView extends Component {
  state = { signIns: [], problem: '' };

  /** Runs a change, if any, and shows what there is then. */
  async show(change) {
    try {
      await change?.();
      this.setState({ signIns: await fetchSignIns(), problem: '' });
    } catch {
      this.setState({ problem: "That didn't work. Please try again in a moment." });
    }
  }

  render(_props, { signIns, problem }) {
    const hasOthers = signIns.some(({ isThis }) => !isThis);
    return html`<details class="sign-ins" onToggle=${(event) => event.target.open && this.show()}>
      <summary>Signed-in browsers</summary>
      <ul>${signIns.map(
        (signIn) =>
          html`<${SignInLine} key=${signIn.id} signIn=${signIn} onEnd=${() => this.show(() => endSignIn(signIn.id))} />`,
      )}</ul>
      <p class="problem" role="alert">${problem}</p>
      ${
        hasOthers &&
        html`<button class="quiet" onClick=${() => this.show(endOtherSignIns)}>End all others</button>`
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
        ? html`<span class="word">this one</span>`
        : html`<button class="link" onClick=${onEnd} aria-label=${`End: ${browser}`}>End</button>`
    }
    <span class="detail">since ${timeText(createdAt)}, seen ${timeText(lastSeenAt)}</span>
  </li>`;
}

function timeText(at) {
  return new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
