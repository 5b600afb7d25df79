import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { turn } from '../support/turn.ts';

/** The full sizes take half an hour on a machine with two busy cores. */
const patienceMs = isLong ? 3_600_000 : 300_000;

type Checked = { readonly code: number | null; readonly text: string };

function check(args: readonly string[], path = process.env.PATH): Promise<Checked> {
  const child = spawn(process.execPath, ['scripts/check-protocol.mjs', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: path },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => resolve({ code, text }));
  });
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-model-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** Writes a copy of the model with one change and returns its path. */
function changedModel(name: string, from: string, to: string): string {
  const text = readFileSync('proof/lane-protocol/lane.pml', 'utf8');
  expect(text).toContain(from);
  const path = join(folder, name);
  writeFileSync(path, text.replace(from, to));
  return path;
}

describe('the model of the lane protocol', () => {
  it(
    'holds in every state and every endless run, and refutes each broken variant',
    async () => {
      const { code, text } = await check(isLong ? [] : ['--small', '--share', `${turn % 5}/5`]);
      expect(text).toMatch(/^✓ holds: .* states, no error/m);
      expect(text).toMatch(/^✓ broken: .* states, refuted by/m);
      expect(text).toMatch(/checks, 0 wrong\n$/);
      expect(code).toBe(0);
    },
    patienceMs,
  );
});

describe('the check of the model', () => {
  it.runIf(isLong || turn % 4 === 0)(
    'fails if the model does not hold and shows the steps that lead there',
    async () => {
      const model = changedModel(
        'open.pml',
        '#define may_write(s) (held[s] == epoch)',
        '#define may_write(s) true',
      );
      const { code, text } = await check(['--small', '--only', 'holds: 2 messages', '--model', model]);
      expect(text).toMatch(
        /✗ holds: 2 messages: .*(answered twice|a write out of turn)[\s\S]*proc {2}\d \(Slot:1\)[\s\S]*1 wrong/,
      );
      expect(code).toBe(1);
    },
  );

  it.runIf(isLong || turn % 4 === 2)('fails if a broken variant is not refuted', async () => {
    const model = changedModel('deaf.pml', '#ifdef PARK_UNSEEN', '#ifdef NOTHING');
    const { code, text } = await check(['--only', 'parking does not check', '--model', model]);
    expect(text).toMatch(/✗ broken: parking does not check .*NOT refuted[\s\S]*1 wrong/);
    expect(code).toBe(1);
  });

  it('says what to install if spin or gcc is missing', async () => {
    expect(await check([], '/nowhere')).toEqual({
      code: 1,
      text: 'Missing: spin, gcc. Install with: apt-get install -y spin gcc\n',
    });
  });
});
