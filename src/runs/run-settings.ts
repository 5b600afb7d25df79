import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import type { Config } from '../config/config.ts';
import type { ReplyToMode } from '../replies/reply-pipeline.ts';

export type RunSettings = {
  readonly limits: LoopLimits;
  readonly toolExecution: AgentLoopConfig['toolExecution'];
  readonly steerTail: AgentLoopConfig['steerTail'];
  /** Whether a message that arrives before an answer's first word is answered with it, by kind of chat. */
  readonly steerRestart: Config['run']['steerRestart'];
  /** How many of the waiting messages each boundary takes. */
  readonly steerDelivery: 'one-at-a-time' | 'all';
  readonly replyToMode: ReplyToMode;
  /** Whether to drop an answer that only acknowledges what a tool has sent. */
  readonly suppressAcknowledgements: boolean;
  readonly isPreviewOn: boolean;
  /** How long a tool may take to finish when the process stops, ms. */
  readonly handOverMs: number;
};

/** Derives the run settings from the configuration. */
export function runSettingsFrom({
  run,
  replies,
  shutdownMs,
}: Pick<Config, 'run' | 'replies' | 'shutdownMs'>): RunSettings {
  const {
    timeoutMs: runTimeoutMs,
    modelIdleMs,
    turns,
    repeatedCalls,
    toolExecution,
    steerTail,
    steerRestart,
    steerDelivery,
  } = run;
  return {
    limits: { runTimeoutMs, modelIdleMs, turns, repeatedCalls },
    toolExecution,
    steerTail,
    steerRestart,
    steerDelivery,
    replyToMode: replies.replyToMode,
    suppressAcknowledgements: replies.ackSuppress,
    isPreviewOn: replies.preview,
    // The rest of the deadline is for the checkpoint and for closing.
    handOverMs: Math.max(0, shutdownMs - 5_000),
  };
}
