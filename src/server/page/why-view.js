import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** The state of the person's own message, as a button that opens the message's trace. */
export class WhyButton extends Component {
  state = { text: undefined };

  async open() {
    this.setState({ text: 'Looking it up…' });
    const failed = { text: "That didn't work. Please try again in a moment." };
    const { text } = await call('why', { id: this.props.id }).catch(() => failed);
    this.setState({ text });
  }

  render({ words, title }, { text }) {
    return html`<button type="button" class="why" title=${title} onClick=${() => this.open()}>${words}</button>
      ${text !== undefined && html`<${WhyDialog} text=${text} onClose=${() => this.setState({ text: undefined })} />`}`;
  }
}

/** A native dialog, which keeps the focus and closes on Escape. */
class WhyDialog extends Component {
  componentDidMount() {
    this.dialog.showModal();
  }

  render({ text, onClose }) {
    const keep = (dialog) => {
      this.dialog = dialog;
    };
    return html`<dialog class="why card" ref=${keep} onClose=${onClose} aria-labelledby="why-title">
      <h2 id="why-title">What happened to this message</h2>
      <pre tabindex="0">${text}</pre>
      <form method="dialog"><button class="quiet">Close</button></form>
    </dialog>`;
  }
}
