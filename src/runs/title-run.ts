/** Runs that name a session: one short call without tools, abandoned early because nobody waits for it. */
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import type { ModelInfo, SystemBlock } from '#contracts/model.ts';
import type { TimelineEvent } from '#contracts/timeline.ts';
import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import { titlePrompt } from '../agent/title-prompt.ts';
import type { Store } from '../store/base/command.ts';
import { sessionNamedIn } from '../store/lanes/titles.ts';
import { readSessions } from '../store/reads/read-sessions.ts';

/**
 * Time limit, ms, including waits for a busy model. Only a few of these runs work at once, so none may block the
 * others.
 */
const longestMs = 60_000;
/** Answer limit, tokens: some models think first, and the limit includes that. */
const answerTokens = 1_000;

/** Instructions for a run that names a session. */
export const titleSystem: readonly SystemBlock[] = [{ text: titlePrompt, isStable: true }];

/** Returns the limits of a run that names a session. */
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

export type TitlePublisher = {
  readonly store: Store;
  publish(laneKey: string, event: TimelineEvent): void;
  stream(laneKey: string, make: () => readonly AgentStreamEvent[]): void;
};

/** Notifies the followers of the session that the run in this lane has named, if it has named one. */
export async function publishTitle(
  { store, publish, stream }: TitlePublisher,
  laneKey: string,
): Promise<void> {
  const sessionId = sessionNamedIn(laneKey);
  if (sessionId === undefined) return;
  const [session] = await store.read(readSessions, { ids: [sessionId], limit: 1 });
  if (session?.title === undefined) return;
  const { key, title } = session;
  publish(key, { kind: 'changed' });
  stream(key, () => [{ stream: 'session', sessionId, change: 'title', title }]);
}
