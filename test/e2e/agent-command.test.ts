/** `parley agent`: from the command line through the entrance, the lane and the run, and back. */
import { describe, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { aDataFolder, startParley } from './parley-process.ts';

type OnFinished = (end: () => Promise<void>) => void;

async function aGateway(onTestFinished: OnFinished) {
  const { path: dataDir, remove } = await aDataFolder();
  const parley = await startParley({ dataDir, env: {} });
  onTestFinished(async () => {
    await parley.kill();
    await remove();
  });
  const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' };
  const agent = (...args: string[]) => runParley(['agent', ...args], env);
  return { dataDir, parley, agent, why: (id: string) => runParley(['why', id], env) };
}

describe.concurrent('parley agent', () => {
  test('prints the answer, which stands on record and in no conversation', async ({
    expect,
    onTestFinished,
  }) => {
    const { dataDir, agent, why } = await aGateway(onTestFinished);
    const { code, stdout, stderr } = await agent('--message', 'hello', '--wait', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ outcome: 'answered', text: expect.stringMatching(/\S/) });
    expect(result.usage.outputTokens).toBeGreaterThanOrEqual(0);
    expect((await agent('--message', 'hello again', '--wait')).stdout.trim()).not.toBe('');
    expect((await why(result.runId)).stdout).toContain(result.runId);
    await untilAtRest(dataDir, 0);
    expect(readStore(dataDir, 'select key from outbox')).toEqual([]);
    expect(readStore(dataDir, 'select source, outcome from inbox')).toEqual([
      { source: 'api', outcome: 'answered' },
      { source: 'api', outcome: 'answered' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('says what is wrong, and does nothing', async ({ expect, onTestFinished }) => {
    const { dataDir, parley, agent } = await aGateway(onTestFinished);
    const unknown = await agent('--message', 'hello', '--session', 'main:no:such:dm:one');
    expect(unknown).toMatchObject({ code: 1, stderr: 'There is no session main:no:such:dm:one.\n' });
    const nobody = await agent('--message', 'hello', '--agent', 'nobody');
    expect(nobody).toMatchObject({ code: 1, stderr: 'There is no agent nobody.\n' });
    const long = await agent('--message', 'x'.repeat(16_001));
    expect(long.code).toBe(1);
    expect(long.stderr).toContain('at most 16000');
    expect(readStore(dataDir, 'select id from inbox')).toEqual([]);
    await parley.kill();
    expect((await agent('--message', 'hello')).code).toBe(1);
  });

  test('is sent once under its key', async ({ expect, onTestFinished }) => {
    const { dataDir, agent } = await aGateway(onTestFinished);
    expect((await agent('--message', 'hello', '--key', 'once')).code).toBe(0);
    const { code, stdout } = await agent('--message', 'hello', '--key', 'once', '--wait');
    expect(code).toBe(0);
    expect(stdout.trim()).not.toBe('');
    const other = await agent('--message', 'something else', '--key', 'once');
    expect(other).toMatchObject({ code: 1, stderr: 'The key once belongs to another message.\n' });
    await untilAtRest(dataDir, 0);
    expect(readStore(dataDir, 'select outcome from inbox')).toEqual([{ outcome: 'answered' }]);
    expect(readStore(dataDir, `select id from transcript where role = 'user'`)).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});
