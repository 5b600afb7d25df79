import { expect, it, onTestFinished } from 'vitest';
import { ParleyError } from '#contracts/errors.ts';
import type { AgentMessageInput, AgentService } from '../../src/service/agent-service.ts';
import { aServer } from '../server/a-server.ts';
import { aFolder } from '../support/own-folder.ts';
import { someOperations } from '../support/some-operations.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

const token = 'q7Zr2mXk9vTb4NwLs8Jd1HfG';

/** A gateway whose agents can only do what is given; `leave` ends it, whatever is in progress. */
async function aGateway(agents: Partial<AgentService>) {
  const dataDir = aFolder();
  const operations = someOperations({ agents: agents as AgentService });
  const { server, url } = await aServer({ token, operations });
  onTestFinished(server.close);
  onTestFinished(await publishAddress(dataDir, { url }));
  const agent = (...args: string[]) =>
    runParley(['agent', '--message', 'hi', ...args], { PARLEY_DATA_DIR: dataDir, PARLEY_TOKEN: token });
  return { url, leave: server.close, agent };
}

const ended = { kind: 'ended', outcome: 'answered', text: 'hello' } as const;

it.each([
  ['stores the message', ['--key', 'mine']],
  ['waits for the answer', ['--wait']],
] as const)('says how to continue when the gateway ends while it %s', async (_what, args) => {
  let key: string | undefined;
  const lost = () => {
    void leave();
    return new Promise<never>(() => undefined);
  };
  const { url, leave, agent } = await aGateway({
    send: async (input: AgentMessageInput) => {
      key = input.key;
      return args[0] === '--wait' ? { runId: 'r', session: 's', acceptedAt: 1 } : lost();
    },
    wait: lost,
  });
  const { code, stdout, stderr } = await agent(...args);
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr: `The gateway at ${url} stopped responding. Run the same command with --key ${key} to continue; the message won't be sent twice.\n`,
  });
});

it('says how to continue after a message that may not have been stored', async () => {
  let key: string | undefined;
  const { agent } = await aGateway({
    send: async (input) => {
      key ??= input.key;
      if (input.key === 'again') return { runId: 'r', session: 's', acceptedAt: 1 };
      throw new ParleyError('store_unavailable', 'The database went away.', { retry: { kind: 'later' } });
    },
    wait: async () => ({ ...ended, runId: 'r' }) as never,
    payloadsOf: async () => [],
  });
  const { code, stderr } = await agent('--wait');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `Parley can't use its database right now. It keeps trying; please ask again in a moment. Run the same command with --key ${key} to continue; the message won't be sent twice.\n`,
  });
  expect(await agent('--wait', '--key', 'again')).toMatchObject({ code: 0, stdout: 'hello\n' });
});
