/** Runs that name a session: one short call without tools, given up early, since nobody waits for its answer. */
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import type { ModelInfo, SystemBlock } from '#contracts/model.ts';
import type { TimelineEvent } from '#contracts/timeline.ts';
import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import { titlePrompt } from '../agent/title-prompt.ts';
import type { Store } from '../store/base/command.ts';
import { sessionNamedIn } from '../store/lanes/titles.ts';
import { readSessions } from '../store/reads/read-sessions.ts';

/** Waits for a busy model included. Few of these runs work at once, so one may not hold up the others for long. */
const longestMs = 60_000;
/** Some models think first, and the limit counts that too. */
const answerTokens = 1_000;

/** Instructions of a run that names a session. */
export const titleSystem: readonly SystemBlock[] = [{ text: titlePrompt, isStable: true }];

/** Limits of a run that names a session. */
export function titleSettings(
  limits: LoopLimits,
  info: ModelInfo,
): Pick<AgentLoopConfig, 'limits' | 'maxTokens' | 'reasoning'> {
  return {
    limits: { ...limits, runTimeoutMs: Math.min(limits.runTimeoutMs, longestMs) },
    maxTokens: Math.min(info.answerTokens, answerTokens),
    reasoning: 'off',
  };
}

export type TitleTeller = {
  readonly store: Store;
  publish(laneKey: string, event: TimelineEvent): void;
  stream(laneKey: string, make: () => readonly AgentStreamEvent[]): void;
};

/** Tells those who follow the session that was named, if the run in this lane has named one. */
export async function tellTitle({ store, publish, stream }: TitleTeller, laneKey: string): Promise<void> {
  const sessionId = sessionNamedIn(laneKey);
  if (sessionId === undefined) return;
  const [session] = await store.read(readSessions, { ids: [sessionId], limit: 1 });
  if (session?.title === undefined) return;
  const { key, title } = session;
  publish(key, { kind: 'changed' });
  stream(key, () => [{ stream: 'session', sessionId, change: 'title', title }]);
}
