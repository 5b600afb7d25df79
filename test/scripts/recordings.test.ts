import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const chunk = (delta: object, more: object = {}) => ({ id: 'c', choices: [{ index: 0, delta, ...more }] });
const counted = { usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } };
const asStream = (chunks: readonly object[]) =>
  [...chunks.map((each) => JSON.stringify(each)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');

const cassette = JSON.stringify({
  interactions: [
    {
      request: { method: 'POST', uri: 'https://models.example/v1/chat/completions' },
      response: {
        status: { code: 200 },
        headers: { 'content-type': ['text/event-stream'] },
        body: {
          string: asStream([
            chunk({ content: 'Let me look.' }),
            chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'list', arguments: '{"path":' } }] }),
            chunk({ tool_calls: [{ index: 0, function: { arguments: '"."}' } }] }),
            { ...chunk({}, { finish_reason: 'tool_calls' }), ...counted },
          ]),
        },
      },
    },
  ],
});
/** The script's own reader doesn't know this notation. */
const harmony = asStream([
  chunk({ content: 'analysisThey greet me.assistantfinalHello!' }),
  { ...chunk({}, { finish_reason: 'stop' }), ...counted },
]);

function play(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-recordings-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return spawnSync(process.execPath, ['scripts/recordings.mjs', folder], { encoding: 'utf8' });
}

it('finds no difference between two readings of a recorded cassette', () => {
  const { status, stdout, stderr } = play({ 'list.yaml': cassette });
  expect(stderr).toBe('');
  expect(stdout).toBe('1 answers of 1 hosts in 1 files (0 refusals, 1 tool calls): 0 differences\n');
  expect(status).toBe(0);
});

it('prints where the provider reads a recorded stream differently', () => {
  const { status, stdout } = play({ 'list.json': cassette, 'harmony.sse': harmony });
  expect(stdout).toContain('harmony.sse#0 a fixture text: expected "analysisThey greet me');
  expect(stdout).toContain('read "Hello!"');
  expect(stdout).toMatch(/2 answers of 2 hosts in 2 files .*: 1 differences\n$/);
  expect(status).toBe(1);
});
