import { parleyCommand } from '/page/own-command.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Shown without a session. The token is sent in the request's body, never in an address. */
export function SignInView({ problem, isBusy, onToken }) {
  const submit = (event) => {
    event.preventDefault();
    onToken(new FormData(event.target).get('token').trim());
  };
  return html`<main class="sign-in">
    <form class="card" onSubmit=${submit}>
      <img src="/page/icon.svg" alt="" width="56" height="56" />
      <h1>Parley</h1>
      <p>Open the <strong>sign-in link</strong> that Parley printed when it started. It works once. For a new one, run
        this in Parley's folder: <code>${parleyCommand} signin</code></p>
      <div class="or"><span>or</span></div>
      <label for="token">Access token</label>
      <input id="token" name="token" type="password" required autocomplete="current-password" spellcheck="false" />
      <p class="aside">It's in the file <code>token</code> in Parley's data folder, or in your <code>PARLEY_TOKEN</code>.</p>
      <p class="problem" role="alert">${problem}</p>
      <button class="primary" disabled=${isBusy}>Sign in</button>
    </form>
  </main>`;
}
