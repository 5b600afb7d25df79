/**
 * A run's live display: the typing indicator and a preview of the answer. Both end with the run, whatever happens. Best
 * effort: the outbox delivers what counts.
 */
import type { Capabilities, PreviewStyle } from '#contracts/capabilities.ts';
import type { CallPace, HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { DisplayChoice } from '#contracts/display.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import { createPreviewText, type PreviewText } from '../replies/preview.ts';
import { anySource } from '../replies/silence.ts';
import type { Store } from '../store/base/command.ts';
import { readUnknownPreview, type UnknownPreview } from '../store/delivery/preview.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type LivePreview, readPreview } from '../store/lanes/recover-run.ts';
import type { Display, RunSettings } from './agents.ts';
import { previewRoute } from './plan-answer.ts';
import {
  createLostPreview,
  createPreviewSurface,
  type FindLostPreview,
  type PreviewJournal,
  type PreviewPlace,
  type PreviewSurface,
} from './preview-surface.ts';

export interface LiveView {
  push(delta: string): void;
  /** Adds to the model's reasoning. */
  think(delta: string): void;
  /** Replaces the lines about finished calls. */
  showLines(lines: readonly string[]): void;
  toolStarted(name: string): void;
  /** Says whether a person may have seen part of the answer, including what an earlier holder displayed. */
  isShown(): boolean;
  /** Call it when the model has ended: waits for the call in flight and returns the shown message, if any. */
  finishPreview(): Promise<LivePreview | undefined>;
  /** Returns the part of an unfinished answer that people see; undefined if they see none. */
  shownAnswer(): FormattedText | undefined;
  /** Call it when the answer so far is discarded and written again. */
  anew(): void;
  /** Call it when a new answer begins; the last one has taken over the preview message. */
  next(): void;
  /** Ends typing and previews. */
  end(): Promise<void>;
}

export type LiveViewOptions = PreviewPlace & {
  readonly capabilities: Capabilities;
  readonly chatKind: 'dm' | 'group';
  readonly isPreviewOn: boolean;
  readonly display: DisplayChoice;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: the account may show as much as it likes. */
  readonly pace: CallPace | undefined;
};

/** Delay before the first preview or typing call, ms: a quick answer needs neither. */
const firstSignMs = 300;
/** When a sign is tried again that the account's pace had no room for, ms. */
const pacedMs = 1_000;

/**
 * Shows nothing because there is no connection: after a restart a run may continue before its channel is back. A
 * preview left by an earlier holder still becomes the answer.
 */
export function createNoopView(preview?: LivePreview, findLost?: FindLostPreview): LiveView {
  let left = preview;
  let lost = findLost;
  return {
    push: () => undefined,
    think: () => undefined,
    showLines: () => undefined,
    toolStarted: () => undefined,
    anew: () => undefined,
    isShown: () => left !== undefined || lost !== undefined,
    shownAnswer: () => undefined,
    finishPreview: async () => {
      left ??= await lost?.();
      lost = undefined;
      return left;
    },
    next: () => {
      left = undefined;
      lost = undefined;
    },
    end: async () => undefined,
  };
}

export function createLiveView(options: LiveViewOptions): LiveView {
  const view = new RunView(options);
  view.begin();
  return view;
}

/** Paces the preview of one run: at most one call in flight, none after the model has ended. */
class RunView implements LiveView {
  readonly #options: LiveViewOptions;
  readonly #ended = new AbortController();
  readonly #text: PreviewText;
  readonly #surface: PreviewSurface;
  readonly #intervalMs: number;
  readonly #style: PreviewStyle;
  #lastAt: number | undefined;
  #shown = '';
  #shownAnswer: FormattedText | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The call in flight, if any; text written meanwhile is shown by the next call. */
  #inFlight: Promise<void> | undefined;
  #isSettled = false;

  constructor(options: LiveViewOptions) {
    const { capabilities, chatKind, isPreviewOn } = options;
    const style = isPreviewOn ? capabilities.preview[chatKind] : 'none';
    this.#options = options;
    // The widest context: messages taken while the answer is written may make more words count as silence.
    this.#text = createPreviewText({ context: anySource, capabilities });
    this.#surface = createPreviewSurface(options, style, this.#ended.signal);
    this.#intervalMs = capabilities.previewIntervalMs[chatKind];
    this.#style = style;
  }

  begin(): void {
    void keepTyping(this.#options, this.#ended.signal);
  }

  push(delta: string): void {
    this.#text.push(delta);
    this.#schedule();
  }

  think(delta: string): void {
    if (this.#options.display.reasoning !== 'stream') return;
    this.#text.think(delta);
    this.#schedule();
  }

  showLines(lines: readonly string[]): void {
    if (this.#options.display.verbose !== 'on') return;
    this.#text.showLines(lines);
    this.#schedule();
  }

  toolStarted(name: string): void {
    this.#text.toolStarted(name);
    this.#isSettled = false;
    this.#schedule();
  }

  anew(): void {
    this.#text.reset();
  }

  isShown(): boolean {
    return this.#shown !== '' || this.#surface.mayStand();
  }

  async finishPreview(): Promise<LivePreview | undefined> {
    this.#stopShowing();
    await this.#inFlight;
    await this.#surface.settled();
    return this.#surface.preview();
  }

  shownAnswer(): FormattedText | undefined {
    return this.#style === 'draft' || this.#surface.preview() ? this.#shownAnswer : undefined;
  }

  next(): void {
    this.#surface.reset();
    this.#text.reset();
    this.#text.showLines([]);
    this.#shown = '';
    this.#shownAnswer = undefined;
    this.#isSettled = false;
  }

  async end(): Promise<void> {
    this.#stopShowing();
    // An explicit reason, because the default is an error whose stack nobody would read.
    this.#ended.abort('the run has ended');
    await this.#inFlight;
  }

  #schedule(): void {
    if (this.#style === 'none' || this.#isSettled || this.#timer || this.#inFlight) return;
    if (this.#ended.signal.aborted) return;
    this.#timer = setTimeout(() => this.#show(), Math.max(0, this.#dueAt() - this.#options.clock.now()));
  }

  #dueAt(): number {
    if (this.#lastAt !== undefined) return this.#lastAt + this.#intervalMs;
    return this.#options.clock.now() + Math.min(firstSignMs, this.#intervalMs);
  }

  #show(): void {
    this.#timer = undefined;
    const text = this.#text.now();
    if (this.#isSettled || !text || text.text === this.#shown) return;
    const { clock, pace } = this.#options;
    if (pace?.mayShow() === false) {
      this.#timer = setTimeout(() => this.#show(), Math.min(pacedMs, this.#intervalMs));
      return;
    }
    this.#shown = text.text;
    this.#lastAt = clock.now();
    this.#inFlight = this.#call(text).finally(() => {
      this.#inFlight = undefined;
      this.#schedule();
    });
  }

  async #call(text: FormattedText): Promise<void> {
    try {
      const answer = this.#text.isAnswer() ? text : undefined;
      if (await this.#surface.show(text)) this.#shownAnswer = answer;
      else this.#shown = '';
    } catch (error) {
      this.#options.log.debug({ error }, 'preview.failed');
    }
  }

  #stopShowing(): void {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

async function keepTyping(
  { adapter, route, clock, pace }: Pick<LiveViewOptions, 'adapter' | 'route' | 'clock' | 'pace'>,
  signal: AbortSignal,
): Promise<void> {
  const { typing } = adapter;
  if (!typing) return;
  await clock.wait(firstSignMs, signal);
  while (!signal.aborted) {
    // Typing is a courtesy: if the network refuses it now, it is retried shortly.
    const mayShow = pace?.mayShow() !== false;
    if (mayShow) await typing.show(route, signal).catch(() => undefined);
    await clock.wait(mayShow ? typing.refreshMs : Math.min(pacedMs, typing.refreshMs), signal);
  }
}

/** Opens the display of a claimed run; `channel` is the connection that shows it, if there is one. */
export async function openLiveView(
  deps: {
    readonly store: Store;
    readonly journal: PreviewJournal;
    readonly clock: Clock;
    readonly log: Log;
    readonly probe: Probe;
    readonly settings: Pick<RunSettings, 'isPreviewOn' | 'replyToMode'>;
    readonly display: Display;
    channelFor(route: ReplyRoute): HostedChannel | undefined;
  },
  run: ClaimedRun,
  channel: HostedChannel | undefined,
): Promise<LiveView> {
  const { store, journal, clock, log, probe, settings, display } = deps;
  const route = routeOf(run.target);
  if (!route) return createNoopView();
  const lookFor = (lost: UnknownPreview) =>
    createLostPreview({ store, log, channel: () => deps.channelFor(route) }, run, lost);
  const preview = run.isResumed ? await store.read(readPreview, { runId: run.runId }) : undefined;
  const lost = run.isResumed && !preview ? await store.read(readUnknownPreview, run) : undefined;
  const findLost = lost && lookFor(lost);
  if (!channel) return createNoopView(preview, findLost);
  const { runId, laneKey, epoch, chatKind } = run;
  return createLiveView({
    adapter: channel.adapter,
    pace: channel.pace,
    capabilities: channel.definition.capabilities,
    display,
    isPreviewOn: settings.isPreviewOn && display.stream === 'preview',
    route: previewRoute(route, settings.replyToMode),
    ...{ runId, laneKey, epoch, chatKind, preview, findLost, lookFor },
    ...{ store, journal, clock, log, probe },
  });
}
