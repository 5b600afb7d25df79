/**
 * `parley chat`: talks to the running gateway. On a terminal it is a conversation with the answer
 * growing in place; in a pipe it sends each line, prints the answers, and exits once every message has ended.
 */
import { randomUUID } from 'node:crypto';
import { createInterface, type Interface } from 'node:readline';
import { maxTextLength, type ServerFrame, tooLongText } from '#channel-kit/client-frames.ts';
import { createLineSplitter } from '#channel-kit/line-splitter.ts';
import { startCommand } from '#channel-kit/own-commands.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import { resumeFrom } from '../client/conversation.js';
import { type ChatLink, createChatLink } from './chat-link.ts';
import { type ChatOutput, type ChatScreen, createStreamScreen, createTtyScreen } from './chat-screen.ts';
import { type ChatTranscript, disconnected, emptyTranscript, received, sent } from './chat-transcript.ts';
import { pastedText, pasteOff, pasteOn, withPastedLines } from './paste-filter.ts';

export type ChatOptions = {
  /** Where the gateway listens; a pointer file next to it is followed. */
  readonly socketPath: string;
  /** Where files that were sent are kept. */
  readonly mediaDir: string;
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: ChatOutput & { readonly isTTY?: boolean };
  readonly errors: NodeJS.WritableStream;
  readonly conversation?: string;
  readonly clock?: Clock;
  /** Ends the chat. */
  readonly signal?: AbortSignal;
  /** In a pipe: how long to wait for the gateway before giving up, ms. */
  readonly patienceMs?: number;
};

const defaultPatienceMs = 10_000;
/** A second Ctrl-C within this time quits. */
const quitWindowMs = 2000;
const greeting = 'Parley: Enter sends, Tab completes a /command, Ctrl-C stops, Ctrl-D leaves.';
const notRunning = `Parley isn't running. Start it: ${startCommand}`;

/** Resolves with the exit code: 0, or 1 when a pipe found no gateway. */
export function runChat(options: ChatOptions): Promise<number> {
  return new Promise((resolve) => {
    const isTty = options.input.isTTY === true && options.output.isTTY === true;
    const clock = options.clock ?? systemClock;
    const reader = isTty ? createReader(options) : undefined;
    const screen = reader
      ? createTtyScreen(options.output, reader)
      : createStreamScreen(options.output, options.errors);
    const finish = (code: number) => {
      if (reader) options.output.write(pasteOff);
      link.close();
      if (reader) reader.close();
      else options.input.pause();
      ended.abort();
      resolve(code);
    };
    const ended = new AbortController();
    const chat = createChat({ isTty, clock, screen, finish, link: () => link, mediaDir: options.mediaDir });
    const link = createChatLink({
      socketPath: options.socketPath,
      conversation: options.conversation ?? 'main',
      clock,
      resumeFrom: chat.resumeFrom,
      onFrame: chat.receive,
      onState: chat.linkChanged,
    });
    options.signal?.addEventListener('abort', () => finish(0), { once: true });
    if (reader) {
      options.output.write(`${pasteOn}${greeting}\n`);
      reader.on('line', (line) => {
        if (line.trim() !== '') screen.submitted(line);
        chat.typed(pastedText(line));
      });
      watchKeys(reader, { chat, screen, clock, finish });
    } else {
      readPipe(options.input, chat);
      const patienceMs = options.patienceMs ?? defaultPatienceMs;
      void giveUpLater({ clock, patienceMs, chat, screen, finish, signal: ended.signal });
    }
  });
}

function createReader({ input, output }: ChatOptions): Interface {
  return createInterface({
    input: withPastedLines(input),
    output,
    prompt: '› ',
    completer: completeCommand,
    terminal: true,
  });
}

/** Reads lines that, unlike readline's, don't end at U+2028 and U+2029, which are part of a message. */
function readPipe(input: NodeJS.ReadableStream, chat: Pick<Chat, 'typed' | 'inputEnded'>): void {
  const lines = createLineSplitter();
  const take = (chunk: Buffer) => {
    for (const line of lines.push(chunk)) for (const part of line.split('\r')) chat.typed(part);
  };
  input.on('data', take);
  input.once('end', () => {
    // The last line may lack its line break.
    take(Buffer.from('\n'));
    chat.inputEnded();
  });
}

/** Completes on Tab. The commands are loaded on first use, since nothing else here needs them. */
function completeCommand(line: string, done: (problem: null, result: [string[], string]) => void): void {
  if (!/^\/[a-z]*$/i.test(line)) {
    done(null, [[], line]);
    return;
  }
  void import('../commands/list.ts').then(({ chatCommands }) => {
    const names = chatCommands.map(({ name }) => `/${name} `);
    done(null, [names.filter((name) => name.startsWith(line.toLowerCase())), line]);
  });
}

type Chat = {
  readonly resumeFrom: () => ReturnType<typeof resumeFrom>;
  readonly wasConnected: () => boolean;
  receive(frame: ServerFrame): void;
  linkChanged(state: 'open' | 'lost'): void;
  typed(line: string): void;
  inputEnded(): void;
  stop(): void;
};

type ChatParts = {
  readonly isTty: boolean;
  readonly mediaDir: string;
  readonly clock: Clock;
  readonly screen: ChatScreen;
  readonly link: () => ChatLink;
  readonly finish: (code: number) => void;
};

function createChat({ isTty, mediaDir, clock, screen, link, finish }: ChatParts): Chat {
  let transcript: ChatTranscript = emptyTranscript;
  let isInputOver = false;
  let wasConnected = false;
  let isLost = false;
  /** True once all own messages have ended; one more read fetches what was stored along with the last outcome. */
  let isLastRead = false;

  const endIfDone = () => {
    if (!isInputOver || isLastRead || transcript.waiting.size > 0 || !wasConnected) return;
    isLastRead = true;
    link().sync();
  };
  return {
    resumeFrom: () => resumeFrom(transcript.conversation),
    wasConnected: () => wasConnected,
    receive: (frame) => {
      const step = received(transcript, frame, { withHistory: isTty, mediaDir });
      transcript = step.transcript;
      for (const line of step.lines) screen.show(line);
      if (isLastRead && link().isSynced(frame)) return finish(0);
      endIfDone();
    },
    linkChanged: (state) => {
      // The requested read was lost with the connection; the next connection asks again.
      isLastRead = false;
      if (state === 'lost') {
        transcript = disconnected(transcript);
        screen.show({ kind: 'preview', text: undefined });
      }
      if (state === 'open') wasConnected = true;
      else if (isTty && !isLost) {
        screen.show({ kind: 'notice', text: wasConnected ? 'reconnecting…' : notRunning });
      }
      isLost = state === 'lost';
    },
    typed: (text) => {
      if (text.trim() === '') return;
      // The gateway would disconnect a client whose frame is too long, and every later message would wait behind it.
      if (text.length > maxTextLength) return screen.show({ kind: 'problem', text: tooLongText });
      const frame = { type: 'send', id: randomUUID(), text } as const;
      transcript = sent(transcript, frame, clock.now());
      link().submit(frame);
    },
    inputEnded: () => {
      isInputOver = true;
      endIfDone();
    },
    stop: () => link().submit({ type: 'stop', id: randomUUID() }),
  };
}

/** Ctrl-C once asks the agent to stop, twice leaves; Ctrl-D leaves. */
function watchKeys(
  reader: Interface,
  parts: {
    readonly chat: Chat;
    readonly screen: ChatScreen;
    readonly clock: Clock;
    readonly finish: (code: number) => void;
  },
): void {
  let lastInterrupt = Number.NEGATIVE_INFINITY;
  reader.prompt();
  reader.on('line', () => reader.prompt());
  reader.once('close', () => parts.finish(0));
  reader.on('SIGINT', () => {
    const now = parts.clock.now();
    if (now - lastInterrupt < quitWindowMs) return parts.finish(0);
    lastInterrupt = now;
    parts.chat.stop();
    parts.screen.show({ kind: 'notice', text: 'stopping; press Ctrl-C again to leave' });
  });
}

async function giveUpLater(parts: {
  readonly clock: Clock;
  readonly patienceMs: number;
  readonly chat: Chat;
  readonly screen: ChatScreen;
  readonly finish: (code: number) => void;
  readonly signal: AbortSignal;
}): Promise<void> {
  await parts.clock.wait(parts.patienceMs, parts.signal);
  if (parts.signal.aborted || parts.chat.wasConnected()) return;
  parts.screen.show({ kind: 'problem', text: notRunning });
  parts.finish(1);
}
