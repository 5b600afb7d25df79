/** `parley agent`: from the command line through the entrance, the lane and the run, and back. */
import { beforeAll, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

describeRow('parley agent', (atEnd) => {
  let dataDir: string;
  let parley: ParleyProcess;
  const command = (...args: string[]) => runParley(args, { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
  const agent = (...args: string[]) => command('agent', ...args);

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    parley = await startParley({ dataDir, env: {} });
    atEnd(() => parley.kill());
  });

  test('reports invalid arguments and does nothing', async ({ expect }) => {
    const unknown = await agent('--message', 'hello', '--session', 'main:no:such:dm:one');
    expect(unknown).toMatchObject({ code: 1, stderr: 'There is no session main:no:such:dm:one.\n' });
    const nobody = await agent('--message', 'hello', '--agent', 'nobody');
    expect(nobody).toMatchObject({ code: 1, stderr: 'There is no agent nobody.\n' });
    const long = await agent('--message', 'x'.repeat(16_001));
    expect(long.code).toBe(1);
    expect(long.stderr).toContain('the limit is 16000');
    expect(readStore(dataDir, 'select id from inbox')).toEqual([]);
  });

  test('prints the answer, which is recorded but belongs to no conversation', async ({ expect }) => {
    const { code, stdout, stderr } = await agent('--message', 'hello', '--wait', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ status: 'ok', outcome: 'answered', text: expect.stringMatching(/\S/) });
    expect(result.usage.outputTokens).toBeGreaterThanOrEqual(0);
    expect((await agent('--message', 'hello again', '--wait')).stdout.trim()).not.toBe('');
    expect((await command('why', result.runId)).stdout).toContain(result.runId);
    await untilAtRest(dataDir, 0);
    expect(readStore(dataDir, 'select key from outbox')).toEqual([]);
    expect(readStore(dataDir, 'select source, outcome from inbox')).toEqual([
      { source: 'api', outcome: 'answered' },
      { source: 'api', outcome: 'answered' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('sends a message once per idempotency key', async ({ expect }) => {
    const items = () => readStore(dataDir, 'select id, outcome from inbox order by seq');
    const told = () => readStore(dataDir, `select id from transcript where role = 'user'`).length;
    const [itemsBefore, toldBefore] = [items().length, told()];
    expect((await agent('--message', 'hello', '--key', 'once')).code).toBe(0);
    const { code, stdout } = await agent('--message', 'hello', '--key', 'once', '--wait');
    expect(code).toBe(0);
    expect(stdout.trim()).not.toBe('');
    const other = await agent('--message', 'something else', '--key', 'once');
    expect(other).toMatchObject({ code: 1, stderr: 'The key once belongs to another message.\n' });
    await untilAtRest(dataDir, 0);
    expect(items().slice(itemsBefore)).toMatchObject([{ outcome: 'answered' }]);
    expect(told()).toBe(toldBefore + 1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('answers once after two sub-agents of the demo model, without an API key', async ({ expect }) => {
    const { stdout, stderr } = await agent('--message', 'spawn two', '--wait');
    expect(stderr).toBe('');
    expect(stdout).toMatch(/Part 1 is done[\s\S]*Part 2 is done/);
    expect(readStore(dataDir, 'select status, told from children')).toEqual([
      { status: 'completed', told: 'tool' },
      { status: 'completed', told: 'tool' },
    ]);
  });

  test('fails if Parley stops meanwhile', async ({ expect }) => {
    await parley.kill();
    expect((await agent('--message', 'hello')).code).toBe(1);
  });
});
