import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** What the owner has to know, above the conversation, until it ends or is dismissed. */
export function NoticesView({ notices, onDismiss }) {
  // The region stays, so that what appears in it is read out.
  return html`<section class="notices" role="status" aria-label="Needs your attention">
    ${notices.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} onDismiss=${onDismiss} />`)}
  </section>`;
}

function Notice({ notice, onDismiss }) {
  return html`<div class="owner-notice">
    <p>${notice.text} <time>${sinceText(notice.since)}</time></p>
    <button class="link" onClick=${() => onDismiss(notice.id)} aria-label=${`Dismiss: ${notice.text}`}>dismiss</button>
  </div>`;
}

function sinceText(since) {
  return `since ${new Date(since).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}`;
}
