import type { ChannelEntry } from '#contracts/channel.ts';
import type { LoginStep } from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import { type ConfiguredAccount, configuredAccounts } from '../channel-host/configured-accounts.ts';
import { isInteractive } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { suggestName } from '../config/suggestion.ts';
import { stripText } from '../logging/redaction.ts';
import { askGateway, wordsWithoutGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import type { CommandOutput } from './print.ts';
import { renderQrCode } from './qr-code.ts';
import { configForReading } from './readable-config.ts';
import { withAdapter } from './with-adapter.ts';

type ShownChannel = { readonly id: string; readonly state: string; readonly detail: string };

/** Shows the channels as the gateway reports them, or as they are configured when it isn't running. */
export async function showChannels(channels: readonly ChannelEntry[]): Promise<CommandOutput> {
  const config = configForReading();
  const answer = await askGateway(config);
  const isRunning = answer.kind === 'running';
  const shown = isRunning ? answer.status.channels : configuredAccounts(channels, config).map(asConfigured);
  const head = isRunning ? [] : [wordsWithoutGateway(answer, config), 'According to the configuration:'];
  const lines = shown.map(({ id, state, detail }) => `  ${id.padEnd(10)} ${state} (${detail})`);
  return { result: { isRunning, channels: shown }, lines: [...head, ...lines] };
}

function asConfigured({ line: id, state }: ConfiguredAccount): ShownChannel {
  if (state.kind === 'off') return { id, state: 'off', detail: state.reason };
  return { id, state: 'configured', detail: 'on at the next start' };
}

/** Links this machine to a person's account, on a network that works that way. Throws ParleyError when it fails. */
export async function runChannelsLogin(
  channels: readonly ChannelEntry[],
  options: {
    /** `signal`, or `signal.work` for a named account. */
    readonly channel: string;
    readonly asJson: boolean;
    /** Ends the attempt; if absent, Ctrl-C does. */
    readonly signal?: AbortSignal;
  },
): Promise<ExitCode> {
  const { channel, asJson, signal = untilInterrupted() } = options;
  const config = loadConfig();
  const accounts = configuredAccounts(channels, config);
  const account = accounts.find(({ line }) => line === channel);
  if (account === undefined) {
    const known = accounts.map(({ line }) => line);
    const meant = suggestName(channel, known);
    const hint = meant === undefined ? `Use one of: ${known.join(', ')}.` : `Did you mean ${meant}?`;
    throw new ParleyError('invalid_input', `“${channel}” isn't a channel. ${hint}`);
  }
  await withAdapter(config, account, async ({ login }) => {
    if (login === undefined) throw new ParleyError('invalid_input', noLogin(account));
    for await (const step of login.login(signal)) {
      process.stdout.write(asJson ? `${JSON.stringify(step)}\n` : describeStep(account, step));
    }
  });
  return 0;
}

function noLogin({ line, entry: { needs } }: ConfiguredAccount): string {
  const instead = needs === undefined ? "it doesn't need one" : `it signs in with ${needs}`;
  return `${line} has no login: ${instead}.`;
}

function describeStep({ line }: ConfiguredAccount, step: LoginStep): string {
  switch (step.kind) {
    case 'scan': {
      // Output to a file or a pipe can't be scanned; the address can be turned into a code elsewhere.
      const code = isInteractive() ? `\n${renderQrCode(step.uri)}` : '';
      return `Scan this code in the network’s app (linked devices) to link ${line}. It changes every minute.\n${code}\n${stripText(step.uri)}\n\n`;
    }
    case 'done':
      return `Linked: ${stripText(step.account)}. Restart Parley to use it.\n`;
    default:
      return step satisfies never;
  }
}

function untilInterrupted(): AbortSignal {
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  return ending.signal;
}
