import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import type { Config } from '../config/config.ts';
import type { ReplyToMode } from '../replies/reply-pipeline.ts';

export type RunSettings = {
  readonly limits: LoopLimits;
  readonly toolExecution: AgentLoopConfig['toolExecution'];
  readonly steerTail: AgentLoopConfig['steerTail'];
  /** How many of the messages that wait each boundary takes in. */
  readonly steerDelivery: 'one-at-a-time' | 'all';
  readonly replyToMode: ReplyToMode;
  /** Whether an answer that only acknowledges what a tool has sent is dropped. */
  readonly suppressAcknowledgements: boolean;
  readonly isPreviewOn: boolean;
  /** How long a tool may finish in when the process stops, ms. */
  readonly handOverMs: number;
};

/** The settings of a run from the configuration. */
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
    steerDelivery,
  } = run;
  return {
    limits: { runTimeoutMs, modelIdleMs, turns, repeatedCalls },
    toolExecution,
    steerTail,
    steerDelivery,
    replyToMode: replies.replyToMode,
    suppressAcknowledgements: replies.ackSuppress,
    isPreviewOn: replies.preview,
    // The rest of the deadline is for the checkpoint and for closing.
    handOverMs: Math.max(0, shutdownMs - 5_000),
  };
}
