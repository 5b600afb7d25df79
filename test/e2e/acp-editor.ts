/** An editor: the client of the Agent Client Protocol's own SDK, over the standard input and output of `parley acp`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import {
  type ClientConnection,
  type ContentBlock,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';

export type Editor = {
  readonly connection: ClientConnection;
  /** What it was told, in order. */
  readonly updates: readonly SessionUpdate[];
  readonly questions: readonly RequestPermissionRequest[];
  /** Returns the answer so far: all chunks of text. */
  text(): string;
  newSession(): Promise<string>;
  prompt(sessionId: string, ...blocks: readonly (string | ContentBlock)[]): Promise<{ stopReason: string }>;
  cancel(sessionId: string): Promise<void>;
  /** Forgets what it was told. */
  clear(): void;
  readonly process: ChildProcess;
  close(): void;
};

export type EditorOptions = {
  readonly dataDir: string;
  readonly args?: readonly string[];
  /** Chooses an answer to a question; default: none is chosen. */
  readonly answer?: (question: RequestPermissionRequest) => Promise<string | undefined> | string | undefined;
};

export async function openEditor({ dataDir, args = [], answer }: EditorOptions): Promise<Editor> {
  const child = spawn(process.execPath, ['bin/parley.mjs', 'acp', ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const updates: SessionUpdate[] = [];
  const questions: RequestPermissionRequest[] = [];
  const connection = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => void updates.push(params.update))
    .onRequest('session/request_permission', async ({ params }) => {
      questions.push(params);
      const optionId = await answer?.(params);
      return {
        outcome: optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId },
      };
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  const { agent } = connection;
  await agent.request('initialize', { protocolVersion: 1, clientInfo: { name: 'test', version: '1' } });
  return {
    ...{ connection, updates, questions, process: child },
    text: () =>
      updates
        .flatMap((update) =>
          update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
            ? [update.content.text]
            : [],
        )
        .join(''),
    newSession: async () => {
      const { sessionId } = await agent.request('session/new', { cwd: '/tmp', mcpServers: [] });
      return sessionId;
    },
    prompt: (sessionId, ...blocks) =>
      agent.request('session/prompt', {
        sessionId,
        prompt: blocks.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block)),
      }),
    cancel: (sessionId) => agent.notify('session/cancel', { sessionId }),
    clear: () => {
      updates.length = 0;
      questions.length = 0;
    },
    close: () => child.kill(),
  };
}
