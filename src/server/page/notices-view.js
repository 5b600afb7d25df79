import { UndeliveredView } from '/page/undelivered-view.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/**
 * Alerts above the conversation: current problems, and notices until they end or are dismissed. Shows all questions and
 * results of answers, but only the first of the other alerts until the person asks for all.
 */
export class NoticesView extends Component {
  state = { showsAll: false };

  render({ problems, notices, questions, results, onDismiss, onAnswer, onForget }, { showsAll }) {
    const all = [
      ...problems.map((problem) => html`<${Problem} key=${problem.id} problem=${problem} />`),
      ...notices.map(
        (notice) => html`<${Notice} key=${notice.id} notice=${notice} onDismiss=${onDismiss} />`,
      ),
    ];
    const more = all.length - 1;
    // The region stays, so that screen readers announce new alerts.
    return html`<section class="notices" role="status" aria-label="Needs your attention">
      ${questions.map((question) => html`<${Question} key=${question.id} question=${question} onAnswer=${onAnswer} />`)}
      ${results.map((result) => html`<${Result} key=${`result-${result.id}`} result=${result} onForget=${onForget} />`)}
      ${showsAll ? all : all.slice(0, 1)}
      ${
        more > 0 &&
        html`<button class="link more" aria-expanded=${showsAll ? 'true' : 'false'}
          onClick=${() => this.setState({ showsAll: !showsAll })}>${showsAll ? 'show only the first' : `and ${more} more`}</button>`
      }
    </section>`;
  }
}

function Problem({ problem }) {
  return html`<div class="owner-notice problem"><p>${problem.text}</p></div>`;
}

/** An open question for the owner, with its choices. */
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

/** The result of an answer, whose question may be gone. */
function Result({ result, onForget }) {
  return html`<div class="owner-notice">
    <p>${result.text}</p>
    <button class="link" onClick=${() => onForget(result.id)} aria-label=${`Dismiss: ${result.text}`}>dismiss</button>
  </div>`;
}

function Notice({ notice, onDismiss }) {
  return html`<div class="owner-notice">
    <div class="words">
      <p>${notice.text} <time>${sinceText(notice.since)}</time></p>
      ${notice.kind === 'delivery-unknown' && html`<${UndeliveredView} key=${notice.lastAt} />`}
    </div>
    <button class="link" onClick=${() => onDismiss(notice.id)} aria-label=${`Dismiss: ${notice.text}`}>dismiss</button>
  </div>`;
}

function sinceText(since) {
  return `since ${new Date(since).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}`;
}
