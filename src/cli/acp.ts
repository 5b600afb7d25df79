/** `parley acp`: connects an editor, on standard input and output, with the running gateway, for as long as both live. */
import { randomUUID } from 'node:crypto';
import { WebSocket } from 'undici';
import { createLineSplitter } from '#channel-kit/line-splitter.ts';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { acpPath } from '../server/acp/mount.ts';
import { AcpRelay } from './acp-relay.ts';
import { askGateway, askRunningGateway, tokenOf } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';

const firstDelayMs = 200;
const maxDelayMs = 3000;
/** The gateway refuses longer frames. */
const frameBytes = 128 * 1024;
/** Closes a connection that names an unknown agent. */
const unknownAgent = 4404;

/** Relays until the editor closes its end. Throws ParleyError if no gateway runs, or it has no such agent. */
export async function runAcp({ agent }: { readonly agent?: string }): Promise<ExitCode> {
  const config = loadConfig();
  let { url } = await askRunningGateway(config);
  const query = new URLSearchParams({ client: randomUUID(), ...(agent !== undefined && { agent }) });
  const connect = async () =>
    new WebSocket(`${url.replace(/^http/, 'ws')}${acpPath}?${query}`, {
      headers: { authorization: `Bearer ${await tokenOf(config)}` },
    });
  const relay = new AcpRelay();
  const editor = readEditor(relay);
  const { signal } = editor.ended;
  try {
    for (let delayMs = firstDelayMs; !signal.aborted; ) {
      const { wasOpen, code } = await relayOver(await connect(), { relay, editor }, signal);
      if (code === unknownAgent)
        throw new ParleyError(
          'invalid_input',
          `There is no agent ${stripText(agent ?? '')}. See: ${parleyCommand} agents list`,
        );
      writeLines(relay.lost());
      delayMs = wasOpen ? firstDelayMs : Math.min(delayMs * 2, maxDelayMs);
      await systemClock.wait(delayMs, signal);
      // After a restart it may listen elsewhere.
      const found = signal.aborted ? undefined : await askGateway(config);
      if (found?.kind === 'running') url = found.url;
    }
    return 0;
  } finally {
    process.stdin.destroy();
  }
}

type EditorEnd = {
  /** Aborts when the editor has closed its end and has every answer. */
  readonly ended: AbortController;
  endIfDone(): void;
  /** Takes what the editor says; undefined: there is no connection. */
  send: ((lines: readonly string[]) => void) | undefined;
};

/** Reads the editor's lines. */
function readEditor(relay: AcpRelay): EditorEnd {
  const ended = new AbortController();
  const lines = createLineSplitter();
  let isInputOver = false;
  const editor: EditorEnd = {
    ended,
    endIfDone: () => {
      if (isInputOver && !relay.hasOpen) ended.abort();
    },
    send: undefined,
  };
  process.stdin.on('data', (chunk: Buffer) => {
    for (const line of lines.push(chunk)) {
      if (line.trim() === '') continue;
      const forGateway = relay.fromEditor(line);
      editor.send?.(forGateway);
    }
  });
  // A script may end its input before its answers come.
  process.stdin.once('end', () => {
    isInputOver = true;
    editor.endIfDone();
  });
  return editor;
}

/** Resolves when the connection has ended. */
function relayOver(
  socket: WebSocket,
  { relay, editor }: { readonly relay: AcpRelay; readonly editor: EditorEnd },
  signal: AbortSignal,
): Promise<{ readonly wasOpen: boolean; readonly code: number }> {
  const lines = createLineSplitter();
  let wasOpen = false;
  const close = () => socket.close();
  signal.addEventListener('abort', close, { once: true });
  socket.addEventListener('open', () => {
    wasOpen = true;
    editor.send = (lines) => {
      for (const line of lines) sendLine(socket, line);
    };
    editor.send(relay.connected());
  });
  socket.addEventListener('message', ({ data }) => {
    for (const line of lines.push(Buffer.from(String(data))))
      writeLines([relay.fromGateway(line)].filter((one) => one !== undefined));
    editor.endIfDone();
  });
  return new Promise((resolve) => {
    // An error only means that there is no connection, which `close` reports too.
    socket.addEventListener('error', () => undefined);
    socket.addEventListener('close', ({ code }) => {
      signal.removeEventListener('abort', close);
      editor.send = undefined;
      resolve({ wasOpen, code });
    });
  });
}

function sendLine(socket: WebSocket, line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length; at += frameBytes) socket.send(bytes.subarray(at, at + frameBytes));
}

function writeLines(lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line}\n`);
}
