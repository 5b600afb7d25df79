/** Runs operations for the command line: at the running gateway, or on the opened store when none runs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { isRestoreUnfinished } from '../backup/restore-plan.ts';
import { atConsole } from '../commands/pair.ts';
import type { Config } from '../config/config.ts';
import { loadConfig, localOwners } from '../config/load-config.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createInboundPolicy } from '../inbound/inbound-policy.ts';
import { createRedactor } from '../logging/redaction.ts';
import type { LocalDeps } from '../operations/list.ts';
import { type Operation, Refusal } from '../operations/operation.ts';
import { issuerOf } from '../server/sign-ins.ts';
import { storeSetup } from '../steps.ts';
import type { Store, StoreSetup } from '../store/base/command.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import { currentStore, readableStore } from '../store/readable-store.ts';
import { endSignIns, readSignIns } from '../store/sign-ins/sign-ins.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { agreeWithProcesses } from './agree-with-processes.ts';
import { askOperation, fail, type NoAnswer, tokenOf } from './ask-gateway.ts';
import { assertReadable } from './file-fault.ts';
import { configForReading } from './readable-config.ts';
import { renderRecord } from './render-record.ts';
import { renderTrace } from './render-trace.ts';

type Call = <Input extends z.ZodType, Answer extends z.ZodType>(
  operation: Operation<LocalDeps, Input, Answer>,
  input: z.input<Input>,
) => Promise<z.output<Answer>>;

/**
 * Runs one operation. Throws ParleyError `invalid_input` if it refuses, and refuses to work on a different database than
 * the data folder's processes. `config`: by default, an operation that only reads accepts a broken file.
 */
export async function callOperation<Input extends z.ZodType, Answer extends z.ZodType>(
  operation: Operation<LocalDeps, Input, Answer>,
  input: z.input<Input>,
  config = operation.method === 'GET' ? configForReading() : loadConfig(),
): Promise<z.output<Answer>> {
  return withOperations(config, (call) => call(operation, input));
}

const atThisConsole = { by: atConsole, signIn: undefined, signal: new AbortController().signal };

/** Runs several operations one after another, on one opened store if there is no gateway. */
export async function withOperations<T>(config: Config, use: (call: Call) => Promise<T>): Promise<T> {
  assertReadable(config.dataDir);
  await agreeWithProcesses(config);
  let reader: Store | undefined;
  let store: Store | undefined;
  const storeFor = async (method: 'GET' | 'POST') => {
    if (method === 'GET' && store === undefined) reader ??= await openToRead(config);
    if (method === 'GET' && reader !== undefined) return reader;
    store ??= await openStore(config);
    return store;
  };
  try {
    return await use(async (operation, input) => {
      const parsed = operation.input?.safeParse(input);
      if (parsed?.success === false) throw new ParleyError('invalid_input', wordsFor(parsed.error));
      const asked = await askOperation(config, operation, input);
      if (asked.kind === 'answer') return asked.answer;
      if (!mayRunHere(operation.method, asked)) return fail(asked, config);
      const deps = await depsFor(config, await storeFor(operation.method));
      // Without a schema it takes no input.
      const answer = await operation.run(deps, parsed?.data as never, atThisConsole);
      if (!(answer instanceof Refusal)) return operation.answer.parse(answer) as typeof answer;
      return fail({ kind: 'refusal', ...answer }, config);
    });
  } finally {
    await reader?.close();
    await store?.close();
  }
}

/**
 * Whether the command may work on the database itself although the folder has a gateway. A change never runs beside a
 * gateway that could make it; reading is harmless, and needed most when the gateway is stuck.
 */
function mayRunHere(method: 'GET' | 'POST', asked: NoAnswer): boolean {
  if (asked.kind === 'refusal') return false;
  const isUnable = asked.kind === 'refused' && asked.code === 'store_unavailable';
  return method === 'GET' || asked.kind === 'away' || asked.kind === 'unserved' || isUnable;
}

function wordsFor({ issues }: z.ZodError): string {
  return issues.map(({ message }) => message).join('\n');
}

async function depsFor(config: Config, store: Store): Promise<LocalDeps> {
  const issuer = issuerOf(await tokenOf(config));
  return {
    ...localDeps(config),
    store,
    signIns: {
      list: () => store.read(readSignIns, { issuer, at: Date.now() }),
      end: (which) => store.write(endSignIns, { issuer, ...which }),
    },
  };
}

/** Returns what operations work on in a process without stages: the sweep of the next gateway finds what is due. */
export function localDeps(config: Config): Omit<LocalDeps, 'store' | 'signIns'> {
  const texts = textsFor(config.language, config.texts);
  return {
    texts,
    policy: createInboundPolicy(config, texts),
    people: localOwners,
    redact: createRedactor(secretsOf(config)).redact,
    render: { trace: renderTrace, record: renderRecord },
    start: () => undefined,
    changed: () => undefined,
    cutToken: () => undefined,
  };
}

/** Opens the existing file without the means to write; undefined if only `openStore` can open it, or say why not. */
async function openToRead({ databaseUrl, dataDir }: Config): Promise<Store | undefined> {
  return databaseUrl || isRestoreUnfinished(dataDir) ? undefined : currentStore(dataDir);
}

/** Opens the existing database, as it is. Throws `store_unavailable` if there is none, or a restore was interrupted. */
async function openStore(config: Config): Promise<Store> {
  const { databaseUrl, dataDir } = config;
  const setup = storeSetup(textsFor(config.language, config.texts));
  if (isRestoreUnfinished(dataDir))
    throw new ParleyError(
      'store_unavailable',
      `A restore of ${dataDir} was interrupted. Finish it first: ${parleyCommand} restore`,
    );
  if (!databaseUrl && !existsSync(join(dataDir, 'parley.db'))) {
    throw new ParleyError(
      'store_unavailable',
      `There is no database in ${dataDir}: Parley hasn't run there yet. Start it, or set PARLEY_DATA_DIR to the folder it uses.`,
    );
  }
  return databaseUrl
    ? openConfiguredStore({ config, setup, poolSize: 1, onNoBackup: warn })
    : openFile(config, setup);
}

/** Opens the file; on a full or read-only disk, existing data can still be read. */
async function openFile(config: Config, setup: StoreSetup): Promise<Store> {
  try {
    return await openConfiguredStore({ config, setup });
  } catch (error) {
    if (!(error instanceof ParleyError) || error.retry.kind !== 'later') throw error;
    return readableStore(config.dataDir, error) ?? Promise.reject(error);
  }
}

function warn(reason: string): void {
  process.stderr.write(`No backup was made before the schema change: ${reason}\n`);
}
