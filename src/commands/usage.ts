import { platformRef } from '../sessions/identities.ts';
import { readBudgets } from '../store/money/budget.ts';
import { readLaneStatus } from '../store/reads/read-sessions.ts';
import { type ModelUsage, readUsage, type SessionUsage } from '../store/reads/read-usage.ts';
import { type ChatTexts, dollarText, fillText } from '../texts/chat-texts.ts';
import { anyone, chatCommand, noWords } from './chat-command.ts';

type Found = {
  readonly session: SessionUsage | undefined;
  /** Micro-dollars spent today; known only where a budget counts them. */
  readonly person: number | undefined;
  readonly gateway: number | undefined;
};

/** `/usage`: shows this conversation's tokens and cost by model, and today's. Only owners see everybody's spending. */
export const usage = chatCommand<Record<never, never>, Found, Found>({
  name: 'usage',
  menu: 'usageMenu',
  parse: noWords('usage'),
  right: anyone,
  load: async ({ store, budgets }, { lane, envelope, identities, authority, now }) => {
    const status = await store.read(readLaneStatus, { laneKey: lane.key });
    const ref = platformRef(envelope.route.channel, envelope.sender.id);
    const { agentId } = lane;
    const person = identities.get(ref) ?? ref;
    const limits = budgets.limitsOf({ agentId, topAgentId: agentId, person, at: now });
    const today = await store.read(readBudgets, { limits });
    const spentBy = (scope: 'person' | 'gateway') => today.find((each) => each.scope === scope)?.spent;
    return {
      session: status && (await store.read(readUsage, { sessionId: status.sessionId })),
      person: spentBy('person'),
      gateway: authority === 'owner' ? spentBy('gateway') : undefined,
    };
  },
  apply: async (_tx, _scene, input) => input,
  say: ({ session, person, gateway }, texts) => {
    const lines = session && session.models.length > 0 ? sayUsage(session, texts) : [texts.usageNone];
    if (person !== undefined) lines.push(fillText(texts.usagePerson, { cost: dollarText(person) }));
    if (gateway !== undefined) lines.push(fillText(texts.usageGateway, { cost: dollarText(gateway) }));
    return lines.join('\n');
  },
});

function sayUsage({ cost, models, childrenCost, unsure }: SessionUsage, texts: ChatTexts): string[] {
  const calls = models.reduce((sum, each) => sum + each.calls, 0);
  const lines = [fillText(texts.usageSession, { cost: dollarText(cost), calls })];
  for (const model of models) lines.push(fillText(texts.usageModel, wordsOf(model)));
  if (childrenCost > 0) lines.push(fillText(texts.usageChildren, { cost: dollarText(childrenCost) }));
  if (unsure > 0) lines.push(fillText(texts.usageUnsure, { calls: unsure }));
  return lines;
}

function wordsOf({ model, calls, cost, ...tokens }: ModelUsage) {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens: output } = tokens;
  const input = inputTokens + cacheReadTokens + cacheWriteTokens;
  const cached = input === 0 ? 0 : Math.round((100 * cacheReadTokens) / input);
  return { model, calls, cost: dollarText(cost), input, cached, output };
}
