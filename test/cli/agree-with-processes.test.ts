import { expect, it, onTestFinished } from 'vitest';
import { agreeWithProcesses, findDisagreements } from '../../src/cli/agree-with-processes.ts';
import { aFolder } from '../support/own-folder.ts';
import { publishAddress } from './publish-address.ts';
import { runParley } from './run-parley.ts';

/** Returns a data folder with a running process that sees these variables. */
async function aRunningGateway(variables: readonly string[]): Promise<string> {
  const dataDir = aFolder();
  const withdraw = await publishAddress(dataDir, { url: 'http://127.0.0.1:9', variables });
  onTestFinished(withdraw);
  return dataDir;
}

it('names the variables that only the process or only the command has', async () => {
  const dataDir = await aRunningGateway(['TELEGRAM_BOT_TOKEN', 'PARLEY_PORT']);
  const [found] = await findDisagreements({ dataDir, variables: ['PARLEY_MODEL', 'PARLEY_DATA_DIR'] });
  expect(found).toMatchObject({ lacking: ['TELEGRAM_BOT_TOKEN'], extra: ['PARLEY_MODEL'] });
  expect(await findDisagreements({ dataDir, variables: ['TELEGRAM_BOT_TOKEN'] })).toEqual([]);
});

it('refuses to work on another database than the process', async () => {
  const dataDir = await aRunningGateway(['DATABASE_URL']);
  await expect(agreeWithProcesses({ dataDir, variables: [] })).rejects.toThrow(
    `Process ${process.pid} uses a different database on ${dataDir}: it has DATABASE_URL and this shell doesn't.`,
  );
  await agreeWithProcesses({ dataDir, variables: ['DATABASE_URL'] });
  const other = await aRunningGateway([]);
  await expect(agreeWithProcesses({ dataDir: other, variables: ['DATABASE_URL'] })).rejects.toThrow(
    'different database',
  );
  const listed = await runParley(['outbox', 'list'], { PARLEY_DATA_DIR: dataDir });
  expect(listed).toMatchObject({ code: 1, stderr: expect.stringContaining('different database') });
});
