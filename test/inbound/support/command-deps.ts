import type { CommandDeps } from '../../../src/commands/chat-command.ts';

/** The part of a command's surroundings that isn't the store or the policy. */
export const commandDeps: Omit<CommandDeps, 'store' | 'policy'> = {
  modelName: 'none',
  agentName: (id) => id,
  contextWindow: () => 200_000,
  models: {
    nameFor: () => 'sonnet',
    isKnown: (name) => ['haiku', 'vendor/dear'].includes(name),
    names: () => ['sonnet', 'haiku'],
  },
  agentReasoning: () => 'off',
};
