import { expect, it, vi } from 'vitest';
import { runCommandLine } from '../../src/cli/command-line.ts';

/** Returns what a command line that can't be understood is answered with. */
async function answerTo(...args: readonly string[]) {
  const said: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const entry = { start: async () => 0 as const, chatSocket: '', parts: { channels: [], plugins: [] } };
  const code = await runCommandLine(args, entry).finally(() => spy.mockRestore());
  return { code, said: said.join('') };
}

it.each([
  [['stauts'], "“stauts” isn't a command. Did you mean: ./bin/parley.mjs status\n"],
  [['queue', 'lst'], "“lst” isn't a command. Did you mean: ./bin/parley.mjs queue list\n"],
  [['bicycle'], "“bicycle” isn't a command. See: ./bin/parley.mjs --help\n"],
  [['doctor', '--jsn'], "“--jsn” isn't an option here. Did you mean --json?\n"],
  [['doctor', '--bicycle'], "“--bicycle” isn't an option here. See: ./bin/parley.mjs doctor --help\n"],
  [['why'], "Missing required argument 'id'. See: ./bin/parley.mjs why --help\n"],
  [['\u001bstauts'], "“stauts” isn't a command. Did you mean: ./bin/parley.mjs status\n"],
])('suggests a correction for %j, or where to look', async (args, said) => {
  expect(await answerTo(...args)).toEqual({ code: 2, said });
});
