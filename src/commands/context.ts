import { contextLimits } from '../agent/compaction-cut.ts';
import { estimateTokens } from '../agent/fit-context.ts';
import { readLaneStatus, readSessions } from '../store/reads/read-sessions.ts';
import { readHistory } from '../store/reads/read-transcript.ts';
import { fillText } from '../texts/chat-texts.ts';
import { anyone, chatCommand, noWords } from './chat-command.ts';

type Found = Readonly<
  Record<
    | 'last'
    | 'threshold'
    | 'messages'
    | 'messageTokens'
    | 'results'
    | 'resultTokens'
    | 'summaryTokens'
    | 'total'
    | 'instructionTokens'
    | 'toolTokens',
    number
  >
>;

/** `/context`: shows what the next request consists of, in tokens. All except the last call's count are estimates. */
export const context = chatCommand<Record<never, never>, Found | undefined, Found | undefined>({
  name: 'context',
  menu: 'contextMenu',
  parse: noWords('context'),
  right: anyone,
  load: async ({ store, models, contextWindow }, { lane }) => {
    const status = await store.read(readLaneStatus, { laneKey: lane.key });
    if (status === undefined) return undefined;
    const { sessionId } = status;
    const [history, sessions] = await Promise.all([
      store.read(readHistory, { sessionId }),
      store.read(readSessions, { ids: [sessionId], limit: 1 }),
    ]);
    const [session] = sessions;
    const results = history.filter(({ role }) => role === 'tool');
    const summary = history.filter(({ isSummary }) => isSummary);
    const summaryTokens = estimateTokens(summary);
    return {
      last: (session?.promptTokens ?? 0) + (session?.completionTokens ?? 0),
      threshold: contextLimits(contextWindow(models.nameFor(lane.agentId, 'turn', session?.model))).threshold,
      instructionTokens: session?.instructionTokens ?? 0,
      toolTokens: session?.toolTokens ?? 0,
      messages: history.length - summary.length,
      messageTokens: estimateTokens(history) - summaryTokens,
      results: results.length,
      resultTokens: estimateTokens(results),
      summaryTokens,
      total: session?.messageCount ?? history.length,
    };
  },
  apply: async (_tx, _scene, input) => input,
  say: (found, texts) => {
    if (found === undefined || found.total === 0) return texts.contextEmpty;
    const lines = [texts.contextSize, texts.contextMessages];
    if (found.instructionTokens > 0) lines.splice(1, 0, texts.contextInstructions);
    if (found.results > 0) lines.push(texts.contextResults);
    if (found.summaryTokens > 0) lines.push(texts.contextSummary);
    return lines.map((line) => fillText(line, found)).join('\n');
  },
});
