import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Lists messages that may not have arrived, below the notice that says so; each can be resent or dropped. */
export class UndeliveredView extends Component {
  state = { parts: [], problem: '' };

  componentDidMount() {
    this.show();
  }

  /** Makes a change, if any, then reloads the list. */
  async show(change) {
    try {
      await change?.();
      const { parts } = await call('outbox');
      this.setState({ parts: parts.filter(({ state }) => state === 'unknown'), problem: '' });
    } catch {
      this.setState({ problem: "That didn't work. Please try again in a moment." });
    }
  }

  render(_props, { parts, problem }) {
    return html`<ul class="undelivered">${parts.map(
      (part) => html`<li key=${part.key}>
        <span>“${part.excerpt}”</span>
        <button class="link" onClick=${() => this.show(() => call('outbox/retry', { key: part.key }))}
          title="It may arrive twice" aria-label=${`Send again: ${part.excerpt}`}>send again</button>
        <button class="link" onClick=${() => this.show(() => call('outbox/drop', { key: part.key }))}
          aria-label=${`Drop: ${part.excerpt}`}>drop</button>
      </li>`,
    )}</ul>
    <p class="problem" role="alert">${problem}</p>`;
  }
}
