/** Starts the page: checks the session, then shows the chat or the sign-in form. */
import { fetchStatus, signIn } from '/page/api.js';
import { startChat } from '/page/chat.js';
import { parleyCommand } from '/page/own-command.js';
import { SignInView } from '/page/sign-in-view.js';
import { h, render } from '/vendor/preact.js';

const retryMs = 1000;
const root = document.getElementById('app');

async function boot() {
  const problem =
    location.hash === '#link-not-valid'
      ? `That link was already used or has expired. For a new one, run: ${parleyCommand} signin`
      : '';
  if (location.hash !== '') history.replaceState(null, '', '/');
  const status = await untilReachable(fetchStatus);
  if (status === undefined) showSignIn(problem);
  else startChat(root, status);
}

async function untilReachable(ask) {
  for (;;) {
    try {
      return await ask();
    } catch {
      // Parley is restarting or unreachable; both pass.
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

function showSignIn(problem, isBusy = false) {
  const onToken = async (token) => {
    showSignIn('', true);
    const refusal = await signIn(token);
    if (refusal === undefined) location.reload();
    else showSignIn(refusal);
  };
  render(h(SignInView, { problem, isBusy, onToken }), root);
}

boot();
