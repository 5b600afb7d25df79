import type { ChannelEntry } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { Config } from '../config/config.ts';
import type { ReloadResult } from '../config/live-settings.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { LoopWatch } from '../logging/loop-watch.ts';
import type { ConfiguredModel } from '../models/models.ts';
import type { PluginEntry } from '../plugin-host/replace-plugins.ts';
import type { Closers } from '../processes/closers.ts';
import type { EffectDispatcher } from '../queue/effect-dispatcher.ts';
import type { FailureStreaks } from '../queue/failure-streaks.ts';
import type { Feed } from '../queue/feed.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import type { Metrics } from '../server/metrics/metrics.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import type { Infrastructure } from './infrastructure.ts';

/** The settings and parts with which the command line starts a process. */
export type GatewayOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly version: string;
  readonly channels: readonly ChannelEntry[];
  readonly plugins: readonly PluginEntry[];
  readonly clock?: Clock;
  readonly probe?: Probe;
  /** Answers instead of the configured model, for measurements of everything else. */
  readonly model?: ConfiguredModel;
  /** Reads the configuration again and puts it into force, for `parley reload`. */
  reload?(): Promise<ReloadResult>;
  /** Awaited before the page's address is taken, so that its current holder can release it. */
  beforeListen?(): Promise<void>;
  /** Called with each secret created at run time, so that it never reaches a log. */
  onSecret?(value: string): void;
  /** Removes every secret known so far from a text. If absent, those of the configuration are removed. */
  redact?(text: string): string;
};

/** The shared parts that every stage receives: configuration, store, Redis, clock, texts and meters. */
export type StageDeps = GatewayOptions &
  Infrastructure & {
    readonly clock: Clock;
    readonly probe: Probe;
    redact(text: string): string;
    readonly closers: Closers;
    readonly live: LiveEvents;
    readonly loop: LoopWatch;
    readonly shaper: TextShaper;
    /** Whether this process accepts messages, with the page and the channels' connections. */
    readonly receives: boolean;
    /** Whether it works lanes. */
    readonly works: boolean;
    /** Whether no other process can receive or work: with SQLite, a process with all roles has its folder to itself. */
    readonly isAlone: boolean;
    readonly texts: ChatTexts;
    readonly dispatcher: EffectDispatcher;
    readonly failures: FailureStreaks;
    readonly feed: Feed;
    readonly hooks: Hooks;
    readonly meters: Metrics;
    readonly model: ConfiguredModel;
  };
