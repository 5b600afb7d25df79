import type { SystemBlock } from '#contracts/model.ts';
import type { Tool, ToolRun } from '#contracts/tool.ts';
import { type BootstrapFiles, createBootstrapFiles } from '../agent/bootstrap-files.ts';
import { buildSystemPrompt } from '../agent/system-prompt.ts';
import type { AgentSettings, Config } from '../config/config.ts';

/** The configured agents, with what is built once for each. */
export interface Agents {
  /** An agent that left the configuration is played by the default one. */
  settingsOf(id: string): AgentSettings;
  promptFor(run: ToolRun, scene: PromptScene): Promise<readonly SystemBlock[]>;
}

export type PromptScene = {
  readonly chatKind: 'dm' | 'group';
  readonly tools: readonly Tool[];
};

type Agent = { readonly settings: AgentSettings; readonly files: BootstrapFiles };

/** Creates the configured agents. */
export function createAgents(config: Pick<Config, 'agents' | 'defaultAgent'>): Agents {
  const agents = new Map<string, Agent>();
  for (const settings of config.agents) {
    agents.set(settings.id, { settings, files: createBootstrapFiles({ workspace: settings.workspace }) });
  }
  const find = (id: string): Agent => {
    const agent = agents.get(id) ?? agents.get(config.defaultAgent);
    if (!agent) throw new RangeError(`agent ${config.defaultAgent} is not configured`);
    return agent;
  };
  return {
    settingsOf: (id) => find(id).settings,
    promptFor: async (run, { chatKind, tools }) => {
      const { settings, files } = find(run.agentId);
      const { id, name, profile } = settings;
      return buildSystemPrompt({
        mode: run.role ? 'minimal' : 'full',
        agent: { id, name, ...(profile !== undefined && { instructions: profile }) },
        tools,
        files: await files.read(),
        chat: chatKind === 'dm' ? 'direct' : 'group',
      });
    },
  };
}
