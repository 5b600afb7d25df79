import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Lists the conversations and their cost, loaded when opened. */
export class SessionsView extends Component {
  state = { sessions: [], problem: '' };

  async show() {
    try {
      const { sessions } = await call('sessions');
      this.setState({ sessions, problem: '' });
    } catch {
      this.setState({ problem: "That didn't work. Please try again in a moment." });
    }
  }

  render(_props, { sessions, problem }) {
    return html`<details class="listing sessions" onToggle=${(event) => event.target.open && this.show()}>
      <summary>Conversations</summary>
      <ul>${sessions.map((session) => html`<${SessionLine} key=${session.id} session=${session} />`)}</ul>
      <p class="problem" role="alert">${problem}</p>
    </details>`;
  }
}

function SessionLine({ session }) {
  const { title, key, messageCount, tokens, cost, isSummarized, updatedAt } = session;
  return html`<li>
    <span class="name">${title ?? key}</span>
    <span class="word">$${(cost / 1e6).toFixed(4)}</span>
    <span class="detail">messages: ${messageCount}, tokens: ${tokens.prompt + tokens.completion}${
      isSummarized && ', summarised'
    }, ${timeText(updatedAt)}</span>
  </li>`;
}

function timeText(at) {
  return new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
