import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);
const shownForMs = 2000;

/** Copies a text and briefly confirms it. */
export class CopyButton extends Component {
  state = { isDone: false };

  async copy() {
    if (!(await copyText(this.props.text))) return;
    this.setState({ isDone: true });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.setState({ isDone: false }), shownForMs);
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  render({ what }, { isDone }) {
    const word = isDone ? 'Copied' : 'Copy';
    return html`<button type="button" class="copy" aria-label=${`${word} ${what}`}
      onClick=${() => this.copy()}>${word}</button>`;
  }
}

/** Returns true if the copy worked. Without TLS, as on a home network, browsers only offer the older way. */
async function copyText(text) {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed here; the older way may work.
    }
  }
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'off-screen';
  document.body.append(field);
  const focused = document.activeElement;
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  focused?.focus();
  return isCopied;
}
