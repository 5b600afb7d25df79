import { expect, it } from 'vitest';
import { aLane, aMessage, aWorker } from '../store/builders.ts';
import { counted } from '../store/call-builders.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

const secret = 'sk-test-0123456789abcdef0123';

/** Returns a data folder with one answered message and a store that stays open, as under a running gateway. */
async function aFolder() {
  const { store, dataDir } = await aStore();
  const worker = aWorker(store);
  const say = (conversation: string, messageId: string, eventKey: string) =>
    worker.accept(aMessage({ conversation, text: `what of ${secret}?`, messageId, eventKey }));
  await say('-100123', '45', 'message:45');
  const run = await worker.claimRun(aLane('-100123').key);
  const cacheMiss = { reason: 'system_changed', changed: ['system'], prefix: 'abc' } as const;
  const modelCalls = [counted(run, { cost: 1234, withoutTools: true, cacheMiss })];
  await worker.answer(run, 'nothing', { modelCalls });
  const parley = (...args: string[]) =>
    runParley(['why', ...args], { PARLEY_DATA_DIR: dataDir, ANTHROPIC_API_KEY: secret });
  return { say, parley, run };
}

it('shows what happened to a message in order of time, with its cost', { timeout: 300_000 }, async () => {
  const { parley, run } = await aFolder();
  const { stdout, code } = await parley('test:-100123/45');
  expect(code).toBe(0);
  const [head, ...lines] = stdout.trimEnd().split('\n');
  expect(head).toBe('message test/bot/-100123/45');
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  `;
  const told = [
    `^${time}event message:45 reached test/bot: accepted$`,
    `^${time}message 45 from test:ann \\(owner\\) entered lane main:bot:test:dm:-100123 as `,
    `^${time}message 45 was taken by run ${run.runId} as `,
    `^${time}run ${run.runId} began in lane `,
    `^${time}model test-model: 120 tokens in, 30 out, \\$0\\.001234, 56 ms, without tools, which it doesn't support; its server didn't use its cache \\(system_changed; Parley changed system\\)$`,
    `^${time}run ${run.runId} ended normally$`,
    `^${time}reply ${run.runId}:1 to test/bot/-100123: to be sent at `,
    `^message 45 ended: answered`,
    `^cost: \\$0\\.001234 in 1 model call$`,
  ];
  for (const line of told)
    expect(
      lines.filter((one) => new RegExp(line).test(one)),
      line,
    ).toHaveLength(1);
  const times = lines.flatMap((line) => /^\d{4}-\d\d-\d\d \S+/.exec(line) ?? []);
  expect(times).toEqual([...times].sort());
});

it('shows message text only if asked to, and no secret even then', { timeout: 300_000 }, async () => {
  const { parley } = await aFolder();
  expect((await parley('45')).stdout).not.toContain('what of');
  const shown = (await parley('45', '--text')).stdout;
  expect(shown).toContain('“what of [secret]?”');
  expect(shown).toContain('“nothing”');
  const { stdout } = await parley('45', '--text', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    asked: { kind: 'message', messageId: '45' },
    items: [{ outcome: 'answered', excerpt: 'what of [secret]?' }],
    parts: [{ state: 'pending', excerpt: 'nothing' }],
  });
  expect(stdout).not.toContain(secret);
});

it('lists the messages that an id may mean and the other ids that it accepts', {
  timeout: 300_000,
}, async () => {
  const { say, parley, run } = await aFolder();
  await say('-100999', '45', 'message:other');
  const several = await parley('45');
  expect(several.code).toBe(1);
  expect(several.stderr).toMatch(/^45 has several meanings\. Give one of these ids:$/m);
  expect(several.stderr).toMatch(/^ {2}test\/bot\/-100123\/45 {2}arrived \d{4}-/m);
  expect(several.stderr).toMatch(/^ {2}test\/bot\/-100999\/45 {2}arrived \d{4}-/m);
  expect((await parley('test/bot/-100999/45')).stdout).toMatch(
    /^message 45 has been due since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; the next free worker will take it$/m,
  );
  const unknown = await parley('nobody');
  expect(unknown).toMatchObject({ code: 1, stdout: '' });
  expect(unknown.stderr).toMatch(/^No record of nobody\.\nThese ids are understood:\n {2}a message: 45, or /);
  const other = await parley(run.sessionId);
  expect(other).toMatchObject({ code: 0, stderr: '' });
  expect(other.stdout).toMatch(new RegExp(`^session ${run.sessionId}\n(?:.*\n)*agent id: main\n`));
  const { stdout } = await parley('main:bot:test:dm:-100999', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    kind: 'lane',
    lane: { key: 'main:bot:test:dm:-100999', waitingCount: 1 },
  });
});
