import { goneText, shownImages, sizeText } from '/client/file-facts.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** A file that the agent has sent: an image as such, any other as a link. `onShown` is called when an image has its size. */
export class FileView extends Component {
  state = { isBroken: false };

  render({ id, file, onShown }, { isBroken }) {
    const { name, mimeType, sizeBytes } = file;
    if (sizeBytes === undefined)
      return html`<p class="sent-file gone"><bdi>${name}</bdi> <span class="size">${goneText}</span></p>`;
    const href = `/api/file?message=${encodeURIComponent(id)}`;
    const size = html`<span class="size">${sizeText(sizeBytes)}</span>`;
    if (!shownImages.has(mimeType) || isBroken)
      return html`<p class="sent-file"><a href=${href} target="_blank" rel="noopener" aria-label=${`File ${name}, ${sizeText(sizeBytes)}`}>
        <${FileIcon} /><bdi>${name}</bdi> ${size}</a></p>`;
    return html`<figure class="sent-image">
      <a href=${href} target="_blank" rel="noopener"><img src=${href} alt=${`Image ${name}`} loading="lazy"
        decoding="async" onLoad=${onShown} onError=${() => this.setState({ isBroken: true })} /></a>
      <figcaption><bdi>${name}</bdi> ${size}</figcaption>
    </figure>`;
  }
}

function FileIcon() {
  return html`<svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor"
    stroke-width="1.6" stroke-linejoin="round"><path d="M5 2.5h6.5L15 6v11.5H5zM11 2.5V6.5h4" /></svg>`;
}
