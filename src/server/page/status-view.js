import { ApprovalsView } from '/page/approvals-view.js';
import { parleyCommand } from '/page/own-command.js';
import { SessionsView } from '/page/sessions-view.js';
import { SignInsView } from '/page/sign-ins-view.js';
import { TokensView } from '/page/tokens-view.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

export const connectionWords = {
  connecting: 'Connecting…',
  open: 'Connected',
  lost: 'Connection lost. Reconnecting; your messages are kept.',
};

const channelWords = { on: 'on', off: 'off', standby: 'standby', trouble: 'trouble' };

/** The small status area: a dot and the model's name. It opens to show the channels and their states. */
export function StatusView({ status, connection, onLanes, onSignOut }) {
  return html`<details class="status panel floats">
    <summary title=${connectionWords[connection]}>
      <span class="heard">Status</span>
      <span class="dot ${connection}"></span>
      <span class="model">${connection === 'open' ? nameOf(status?.model) : shortWord(connection)}</span>
      ${status?.model.isDemo && html`<span class="badge">demo model</span>`}
    </summary>
    <div class="card popover">
      <p class="line"><span class="dot ${connection}"></span>${connectionWords[connection]}</p>
      ${status !== undefined && html`<${Details} status=${status} />`}
      <button class="quiet" onClick=${onLanes}>Lanes and waiting messages</button>
      <${SessionsView} />
      <${ApprovalsView} />
      <${SignInsView} />
      <${TokensView} />
      <button class="quiet" onClick=${onSignOut}>Sign out this browser</button>
    </div>
  </details>`;
}

/** Returns the model's name; the demo model has a badge instead. */
function nameOf(model) {
  return model?.isDemo ? '' : (model?.name ?? 'Parley');
}

function shortWord(connection) {
  return connection === 'lost' ? 'reconnecting…' : 'connecting…';
}

function Details({ status }) {
  return html`<h2>Model</h2>
    <p class="line">${status.model.name}</p>
    ${
      status.model.isDemo &&
      html`<p class="aside">A script that needs no key. For a real model,
        run${' '}<code>${parleyCommand} onboard</code>.</p>`
    }
    <h2>Channels</h2>
    <ul class="channels">${status.channels.map((channel) => html`<${ChannelLine} channel=${channel} />`)}</ul>
    <p class="aside">Parley ${status.version}</p>`;
}

function ChannelLine({ channel }) {
  return html`<li>
    <span class="dot ${channel.state}"></span>
    <span class="name">${channel.id}</span>
    <span class="word">${channelWords[channel.state]}</span>
    <span class="detail">${channel.detail}${timesOf(channel)}</span>
  </li>`;
}

/** Shows when a channel went down and when it is retried, as `/readyz` does. */
function timesOf({ since, nextTryAt }) {
  const from = since === undefined ? '' : `, since ${timeOf(since)}`;
  return nextTryAt === undefined ? from : `${from}, next try ${timeOf(nextTryAt)}`;
}

function timeOf(at) {
  return new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
