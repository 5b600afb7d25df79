/** Lists hooks, and accepts scripts. */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { homeFolder, readSurroundings } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { writeSettings } from '../config/write-settings.ts';
import { readScript } from '../hooks/script-hooks.ts';
import * as operations from '../operations/hooks.ts';
import { askOperation } from './ask-gateway.ts';
import { wordsForWritten } from './onboard/report-settings.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

/** Lists the hooks of the running gateway; without one, the configured scripts and whether they would be run. */
export async function listHooks(): Promise<CommandOutput> {
  const config = configForReading();
  const asked = await askOperation(config, operations.listHooks, {});
  if (asked.kind === 'answer') {
    const { hooks } = asked.answer;
    const lines = hooks.map(({ event, owner, state, calls, failures, problem }) => {
      const counts = `${count(calls, 'call')}, ${count(failures, 'failure')}`;
      return `${event}  ${owner}  ${state}  ${counts}${problem === undefined ? '' : `  (${problem})`}`;
    });
    return { result: hooks, lines: lines.length === 0 ? ['No hooks.'] : lines };
  }
  const scripts = await Promise.all(
    config.hooks.map(async (entry) => {
      const found = await readScript(config, entry);
      const isAccepted = found.kind === 'found' && found.digest === entry.digest;
      const problem = found.kind === 'unusable' ? found.problem : undefined;
      return { event: entry.event, owner: entry.run, isAccepted, problem };
    }),
  );
  const lines = scripts.map(({ event, owner, isAccepted, problem }) => {
    const state = isAccepted
      ? 'accepted'
      : (problem ?? `not accepted; see: ${parleyCommand} hooks accept ${owner}`);
    return `${event}  ${owner}  ${state}`;
  });
  return { result: scripts, lines: ['Parley isn’t running. Configured scripts:', ...lines] };
}

/** Accepts a script as it is now: only these bytes will run. */
export async function acceptScript(name: string): Promise<CommandOutput> {
  const config = loadConfig();
  const entries = config.hooks.filter(({ run }) => run === name);
  if (entries.length === 0) {
    const example = JSON.stringify({ hooks: [{ event: 'before_tool_call', run: name }] });
    throw new ParleyError(
      'invalid_input',
      `No hook runs ${name}. Add it to the configuration first: ${example}`,
    );
  }
  const files = await Promise.all(entries.map((entry) => readScript(config, entry)));
  const accepted = entries.map((entry, index) => {
    const file = files[index];
    if (file?.kind !== 'found') throw new ParleyError('invalid_input', `${file?.problem}.`);
    return { entry, ...file };
  });
  const digestOf = (agent: unknown) => accepted.find(({ entry }) => entry.agent === agent)?.digest;
  const written = await writeSettings(
    {
      hooks: (before: unknown) =>
        Array.isArray(before)
          ? before.map((each) => (each.run === name ? { ...each, digest: digestOf(each.agent) } : each))
          : before,
    },
    readSurroundings(homeFolder()),
    homeFolder(),
  );
  const lines = [
    ...accepted.map(({ path, digest }) => `Accepted ${path} (${digest}).`),
    'It runs with Parley’s rights, outside any sandbox.',
    wordsForWritten(written),
    'Restart Parley to run it.',
  ];
  return { result: accepted.map(({ path, digest }) => ({ path, digest })), lines };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
