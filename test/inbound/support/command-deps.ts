import type { CommandDeps } from '../../../src/commands/chat-command.ts';

/** A command's dependencies other than the store and the policy. */
export const commandDeps: Omit<CommandDeps, 'store' | 'policy'> = {
  hooks: () => [],
  agents: [{ id: 'main', name: 'Parley' }],
  agentName: (id) => id,
  contextWindow: (model) => (model === 'haiku' ? 100_000 : 200_000),
  models: {
    nameFor: (_agent, _purpose, session) => session ?? 'sonnet',
    isKnown: (name) => ['haiku', 'vendor/dear'].includes(name),
    names: () => ['sonnet', 'haiku'],
  },
  agentReasoning: () => 'off',
  displayOn: () => ({ verbose: 'off', reasoning: 'off' }),
  budgets: { limitsOf: () => [] },
};
