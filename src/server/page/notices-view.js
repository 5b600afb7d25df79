import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Alerts above the conversation: current problems, and notices until they end or are dismissed. */
export function NoticesView({ problems, notices, questions, onDismiss, onAnswer }) {
  // The region stays, so that screen readers announce new alerts.
  return html`<section class="notices" role="status" aria-label="Needs your attention">
    ${problems.map((problem) => html`<div class="owner-notice problem" key=${problem.id}><p>${problem.text}</p></div>`)}
    ${questions.map((question) => html`<${Question} key=${question.id} question=${question} onAnswer=${onAnswer} />`)}
    ${notices.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} onDismiss=${onDismiss} />`)}
  </section>`;
}

/** A question that waits for the owner, with its choices. */
function Question({ question, onAnswer }) {
  return html`<div class="owner-notice question">
    <p>${question.text} <time>${sinceText(question.since)}</time></p>
    ${question.choices.map(
      ({ verdict, label }) =>
        html`<button class="choice" key=${verdict} onClick=${() => onAnswer(question.id, verdict)}
          aria-label=${`${label}: ${question.text}`}>${label}</button>`,
    )}
  </div>`;
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
