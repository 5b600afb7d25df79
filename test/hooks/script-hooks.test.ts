import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { agentId } from '#contracts/ids.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { openScriptHooks, readScript, type ScriptSettings } from '../../src/hooks/script-hooks.ts';
import { recordingLog } from '../support/silent-log.ts';
import { decidingCases } from './some-events.ts';

type Entry = Partial<ScriptSettings['hooks'][number]> & { readonly isAccepted?: boolean };

/** A workspace with one script, and the hooks of a process that lists it. */
async function aScript(text: string, { isAccepted = true, ...over }: Entry = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-hooks-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const config = loadConfig({ values: { PARLEY_DATA_DIR: dataDir }, unknown: [] }, dataDir);
  const workspace = config.agents[0]?.workspace ?? '';
  const path = join(workspace, 'hooks', 'guard.sh');
  await mkdir(join(workspace, 'hooks'), { recursive: true });
  await writeFile(path, text, { mode: 0o755 });
  const entry = {
    ...{ event: 'before_tool_call', run: 'guard.sh', timeoutMs: 10_000, guard: false },
    ...over,
  };
  const settings = (digest?: string): ScriptSettings => ({
    ...config,
    hooks: [{ ...entry, ...(digest !== undefined && { digest }) }],
  });
  const found = await readScript(settings(), entry);
  const digest = isAccepted && found.kind === 'found' ? found.digest : undefined;
  const start = async () => {
    const { log, lines } = recordingLog();
    const hooks = createHooks({ log, clock: systemClock });
    await openScriptHooks(settings(digest), { hooks, log });
    const ask = () => hooks.decide('before_tool_call', decidingCases.before_tool_call.event);
    return { hooks, lines, ask };
  };
  return { start, path, dataDir, workspace };
}

const script = (body: string) => `#!/bin/sh\n${body}\n`;
const block = `echo '{"kind":"block","reason":"no writes"}'`;

describe('a script hook', () => {
  it('reads the event as JSON on its input, and decides on its output', async () => {
    const { start, dataDir } = await aScript(script(`cat > "$(dirname "$0")/seen"; ${block}`));
    const { ask } = await start();
    expect(await ask()).toMatchObject({
      end: { kind: 'decided', owner: 'guard.sh', decision: { kind: 'block', reason: 'no writes' } },
    });
    const seen = JSON.parse(await readFile(join(dataDir, 'hooks', 'seen'), 'utf8'));
    expect(seen).toMatchObject({ hook: 'before_tool_call', event: { call: { name: 'write' } } });
  });

  it('makes no decision by printing nothing', async () => {
    const { ask } = await (await aScript(script('cat >/dev/null'))).start();
    expect((await ask()).end).toBeUndefined();
  });

  it.each([
    ['ends with an error', 'echo "no disk" >&2; exit 3', 'it ended with 3: no disk'],
    ['prints something else than JSON', 'echo fine', 'it printed no JSON: fine'],
    ['prints an unknown decision', `echo '{"decision":"approve"}'`, 'its answer isn’t a decision'],
    ['prints too much', 'head -c 400000 /dev/zero | tr "\\0" x', 'it printed more than 262144 bytes'],
  ])('blocks the call if it %s', async (_, body, problem) => {
    const { hooks, ask } = await (await aScript(script(body))).start();
    expect(await ask()).toMatchObject({ end: { kind: 'failed', owner: 'guard.sh' } });
    expect(hooks.states()[0]?.problem).toContain(problem);
  });

  // What other agents let pass, or discard; the numbers are those of their public reports.
  it.each([
    ['openclaw 2363, blocks in its form', `echo '{"block":true,"blockReason":"no"}'`],
    ['openclaw 13689, rewrites in its form', `echo '{"params":{"path":"/etc/passwd"}}'`],
    ['openclaw 52108, asks in its form', `echo '{"requireApproval":true}'`],
    ['hermes 41045, blocks in its form', `echo '{"action":"block","message":"no"}'`],
    ['hermes 61656, raises', 'echo "Traceback" >&2; exit 1'],
    ['claude-code 13756, ends with 2', 'echo "no" >&2; exit 2'],
    ['claude-code 84656, denies and ends with 1', `echo '{"kind":"block","reason":"no"}'; exit 1`],
    ['claude-code 80697, can’t find its interpreter', ''],
    ['better-rm 13, ends with 1 at wrong input', 'exit 1'],
    ['oh-my-pi 6473, denies in its form', `echo '{"permissionDecision":"deny"}'`],
  ])('blocks the call of a script that, as in %s', async (report, body) => {
    const text = report.includes('interpreter') ? '#!/no/such/interpreter\n' : script(body);
    const { ask } = await (await aScript(text)).start();
    expect(await ask()).toMatchObject({ end: { kind: 'failed', owner: 'guard.sh' } });
  });

  it('ends everything that it has started when its time is over', async () => {
    const body = 'sleep 600 & echo $! > "$(dirname "$0")/pid"; wait';
    const { start, dataDir } = await aScript(script(body), { timeoutMs: 1500 });
    const { ask, hooks } = await start();
    expect(await ask()).toMatchObject({ end: { kind: 'failed' } });
    expect(hooks.states()[0]?.problem).toBe('no answer within 1500 ms');
    const pid = Number(await readFile(join(dataDir, 'hooks', 'pid'), 'utf8'));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it('sees no variable but those that programs need', async () => {
    process.env.SOME_SECRET = 'secret';
    onTestFinished(() => void delete process.env.SOME_SECRET);
    const { start, dataDir } = await aScript(script('env > "$(dirname "$0")/env"'));
    await (await start()).ask();
    expect(await readFile(join(dataDir, 'hooks', 'env'), 'utf8')).not.toContain('secret');
  });

  it.each([
    ['has changed since it was accepted', async (path: string) => writeFile(path, script('exit 0'))],
    ['isn’t executable', async (path: string) => chmod(path, 0o644)],
    ['is missing', async (path: string) => rm(path)],
    [
      'isn’t a file',
      async (path: string) => {
        await rm(path);
        await symlink('/bin/true', path);
      },
    ],
  ])('stays off and closes what it guards if it %s', async (why, change) => {
    const { start, path } = await aScript(script('cat >/dev/null'));
    await change(path);
    const { hooks, ask, lines } = await start();
    expect(await ask()).toMatchObject({ end: { kind: 'failed', owner: 'guard.sh' } });
    expect(hooks.states()).toMatchObject([{ state: 'off' }]);
    expect(lines.join().replaceAll("'", '’')).toContain(why);
  });

  it('stays off until it is accepted, and says how', async () => {
    const { hooks } = await (await aScript(script(block), { isAccepted: false })).start();
    expect(hooks.states()[0]?.problem).toMatch(/hasn't been accepted.*hooks accept guard\.sh/);
  });

  it('runs the accepted bytes, whatever is written into the workspace afterwards', async () => {
    const { start, path } = await aScript(script(block));
    const { ask } = await start();
    await writeFile(path, script('exit 0'));
    expect(await ask()).toMatchObject({ end: { kind: 'decided' } });
  });

  it.each(['before_lunch', 'tool_result_persist'])('keeps a script of the hook %s off', async (event) => {
    const { hooks } = await (await aScript(script(block), { event })).start();
    expect(hooks.states()).toMatchObject([{ event, state: 'off' }]);
  });

  it('shows a script of one agent only that agent’s events', async () => {
    const { start } = await aScript(script(block), { agent: 'main' as never });
    const { hooks, ask } = await start();
    expect((await ask()).end).toBeDefined();
    const { event } = decidingCases.before_tool_call;
    const ofOther = { ...event, run: { ...event.run, agentId: agentId('other') } };
    expect((await hooks.decide('before_tool_call', ofOther)).end).toBeUndefined();
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
