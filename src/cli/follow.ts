/**
 * `parley follow`: shows a conversation, or one run, as it happens. When the connection is lost it comes back by itself
 * with the id of the last event, so that nothing is missing or shown twice.
 */

import { clearScreenDown, cursorTo, moveCursor } from 'node:readline';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import { type FeedFrame, feedFrameSchema } from '#contracts/feed-frame.ts';
import type { Config } from '../config/config.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { stripText } from '../logging/redaction.ts';
import { readProcessAddresses } from '../processes/process-address.ts';
import { fail, tokenOf } from './ask-gateway.ts';
import { type ChatOutput, printable, rowsOf, styled } from './chat-screen.ts';
import { type ChatLine, type ChatTranscript, emptyTranscript, received } from './chat-transcript.ts';
import type { ExitCode } from './exit-code.ts';
import { configForReading } from './readable-config.ts';

export type FollowCall = {
  /** A session's key or id, or a run's id; absent: the owner's conversation. */
  readonly what?: string | undefined;
  readonly asJson: boolean;
};

/** Names a session or a run to follow. */
export type FeedQuery = { readonly session?: string } | { readonly run: string };

/** Follows until the run has ended, or somebody interrupts it. Exit code: 0, or 1 for a run without a natural end. */
export async function runFollow({ what, asJson }: FollowCall): Promise<ExitCode> {
  const config = configForReading();
  const show = asJson ? printFrame : createFollowScreen(process.stdout, mediaFolder(config.dataDir));
  const all: readonly FeedQuery[] = what === undefined ? [{}] : [{ session: what }, { run: what }];
  let refused = '';
  for (const asked of all) {
    const link = createFeedLink(config, asked);
    for await (const event of link) {
      if (event.kind === 'unknown') refused = event.text;
      else {
        show(event.frame);
        const end = 'run' in asked ? endIn(event.frame) : undefined;
        if (end) return reportEnd(end);
      }
    }
  }
  throw new ParleyError('invalid_input', refused);
}

function printFrame(frame: FeedFrame): void {
  process.stdout.write(`${JSON.stringify(frame)}\n`);
}

type RunEnd = { readonly runId: string; readonly reason?: string };

/** Returns the end of a run that the frame reports. */
export function endIn(frame: FeedFrame): RunEnd | undefined {
  if (frame.type !== 'event' || frame.event.kind !== 'run' || frame.event.state !== 'ended') return undefined;
  return frame.event;
}

function reportEnd({ runId, reason }: RunEnd): ExitCode {
  if (reason === undefined) return 0;
  const why = `To see what happened, run: ${parleyCommand} why ${runId}`;
  process.stderr.write(`The run gave no answer (${stripText(reason)}). ${why}\n`);
  return 1;
}

export type FeedLinkEvent =
  | { readonly kind: 'frame'; readonly frame: FeedFrame }
  /** There is no such session or run; the feed ends. */
  | { readonly kind: 'unknown'; readonly text: string };

const firstDelayMs = 200;
const maxDelayMs = 3_000;
/** A feed is never silent for this long, ms. */
const silenceMs = 45_000;

/** Reads the feed from whichever gateway of the folder is there. Throws if none is at first, or one refuses. */
export async function* createFeedLink(config: Config, asked: FeedQuery): AsyncGenerator<FeedLinkEvent> {
  let lastId: string | undefined;
  let isKnown = false;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
    const all = await readProcessAddresses(config.dataDir);
    const gateways = all.filter(({ role }) => role !== 'worker');
    if (gateways.length === 0 && !isKnown) fail({ kind: 'away', hasWorkers: all.length > 0 }, config);
    for (const { url } of gateways) {
      try {
        for await (const frame of readFeed(url, await tokenOf(config), { asked, lastId })) {
          isKnown = true;
          delayMs = firstDelayMs;
          if ('id' in frame) lastId = frame.id;
          yield { kind: 'frame', frame };
        }
      } catch (error) {
        if (!(error instanceof RefusedFeed)) continue;
        if (error.status === 404) return yield { kind: 'unknown', text: error.message };
        if (error.status < 500) throw new ParleyError('invalid_input', error.message);
      }
    }
    await systemClock.wait(delayMs);
  }
}

class RefusedFeed extends Error {
  readonly status: number;
  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

const refusalSchema = z.object({ error: z.object({ code: z.string(), text: z.string().exactOptional() }) });

type FeedPosition = { readonly asked: FeedQuery; readonly lastId: string | undefined };

/** Reads one connection's frames. Throws when it breaks off, or has been silent for too long. */
async function* readFeed(
  url: string,
  token: string,
  { asked, lastId }: FeedPosition,
): AsyncGenerator<FeedFrame> {
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), silenceMs);
  try {
    const answer = await fetch(`${url}/api/feed?${new URLSearchParams(asked)}`, {
      headers: { authorization: `Bearer ${token}`, ...(lastId !== undefined && { 'last-event-id': lastId }) },
      redirect: 'manual',
      signal: silent.signal,
    });
    if (answer.status !== 200 || answer.body === null) {
      const { error } = refusalSchema.safeParse(parseJson(await answer.text())).data ?? {};
      throw new RefusedFeed(answer.status, stripText(error?.text ?? error?.code ?? `HTTP ${answer.status}`));
    }
    let rest = '';
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      timer.refresh();
      const events = (rest + chunk).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const data = event.split('\n').find((line) => line.startsWith('data: '));
        // A frame of a later version may be unknown; what is stored follows in others.
        const frame = data === undefined ? undefined : feedFrameSchema.safeParse(parseJson(data.slice(6)));
        if (frame?.success) yield frame.data;
      }
    }
  } finally {
    clearTimeout(timer);
    silent.abort();
  }
}

/** Prints lines for people; on a terminal, what is being written grows below them. */
function createFollowScreen(
  output: ChatOutput & { readonly isTTY?: boolean },
  mediaDir: string,
): (frame: FeedFrame) => void {
  let transcript: ChatTranscript = emptyTranscript;
  let live: readonly string[] = [];
  /** The answer of the open run, if it isn't among the messages: those of programs aren't. */
  let answer: string | undefined;
  const columns = () => (output.columns || 80) - 1;
  const print = (line: ChatLine) => {
    if (output.isTTY) {
      moveCursor(output, 0, -live.length);
      cursorTo(output, 0);
      clearScreenDown(output);
    }
    if (line.kind !== 'preview') output.write(`${output.isTTY ? styled(line, columns()) : plain(line)}\n`);
    else if (output.isTTY) live = rowsOf(printable(line.text ?? ''), columns()).slice(-10);
    if (live.join('') === '') live = [];
    for (const row of live) output.write(`${row}\n`);
  };
  return (frame) => {
    const step = received(transcript, frame, { withHistory: true, mediaDir });
    ({ transcript } = step);
    if (frame.type === 'event' && frame.event.kind === 'answer') answer = frame.event.text;
    if (step.lines.some(({ kind }) => kind === 'agent')) answer = undefined;
    for (const line of step.lines) print(line);
    if (endIn(frame) === undefined) return;
    print({ kind: 'preview', text: undefined });
    if (answer) print({ kind: 'agent', text: answer });
    answer = undefined;
  };
}

const marks = { person: '› ', tool: '  ⋯ ', agent: '', notice: '', problem: '' } as const;

function plain({ kind, text }: Exclude<ChatLine, { kind: 'preview' }>): string {
  return `${marks[kind]}${printable(text)}`;
}
