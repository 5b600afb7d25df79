import type { SystemBlock } from '#contracts/model.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { type BootstrapFile, type BootstrapFiles, createBootstrapFiles } from '../agent/bootstrap-files.ts';
import { buildSystemPrompt, type NamedTool } from '../agent/system-prompt.ts';
import type { AgentSettings, Config } from '../config/config.ts';

/** The configured agents, with what is built once for each. */
export interface Agents {
  /** Returns the agent's settings, or those of the default agent if it has left the configuration. */
  settingsOf(id: string): AgentSettings;
  promptFor(run: Pick<ToolRun, 'agentId' | 'role'>, scene: PromptScene): Promise<readonly SystemBlock[]>;
}

export type PromptScene = {
  readonly chatKind: 'dm' | 'group';
  readonly tools: readonly NamedTool[];
};

type Agent = {
  readonly settings: AgentSettings;
  readonly files: BootstrapFiles;
  /** Prompts by their inputs other than the files: one per kind of run. */
  readonly prompts: Map<string, Prompt>;
};

type Prompt = { readonly files: readonly BootstrapFile[]; readonly blocks: readonly SystemBlock[] };

/** Creates the configured agents. */
export function createAgents(config: Pick<Config, 'agents' | 'defaultAgent'>): Agents {
  const agents = new Map<string, Agent>();
  for (const settings of config.agents) {
    const files = createBootstrapFiles({ workspace: settings.workspace });
    agents.set(settings.id, { settings, files, prompts: new Map() });
  }
  const find = (id: string): Agent => {
    const agent = agents.get(id) ?? agents.get(config.defaultAgent);
    if (!agent) throw new RangeError(`agent ${config.defaultAgent} is not configured`);
    return agent;
  };
  return {
    settingsOf: (id) => find(id).settings,
    promptFor: async (run, { chatKind, tools }) => {
      const { settings, prompts, ...agent } = find(run.agentId);
      const mode = run.role ? 'minimal' : 'full';
      const files = await agent.files.read();
      const kind = [mode, chatKind, ...tools.map(({ name }) => name)].join(' ');
      const known = prompts.get(kind);
      if (known?.files === files) return known.blocks;
      const { id, name, profile } = settings;
      const blocks = buildSystemPrompt({
        mode,
        agent: { id, name, ...(profile !== undefined && { instructions: profile }) },
        tools,
        files,
        chat: chatKind === 'dm' ? 'direct' : 'group',
      });
      prompts.set(kind, { files, blocks });
      return blocks;
    },
  };
}
