import type { DisplayChoice, StreamMode } from '#contracts/display.ts';
import type { Log } from '#contracts/log.ts';
import type { MarkSettings } from '#contracts/mark.ts';
import type { SystemBlock } from '#contracts/model.ts';
import type { SkillSnapshot } from '#contracts/skill.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { type BootstrapFiles, createBootstrapFiles } from '../agent/bootstrap-files.ts';
import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import { buildSystemPrompt, type NamedTool, type PromptFile } from '../agent/system-prompt.ts';
import type { AgentSettings, Config } from '../config/config.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { ReplyToMode } from '../replies/reply-pipeline.ts';
import { createSkills, type Skills } from '../skills/skills.ts';

/** The configured agents, with what is built once for each. */
export interface Agents {
  /** Returns the agent's settings, or those of the default agent if it has left the configuration. */
  settingsOf(id: string): AgentSettings;
  /** Returns the agent's skills that are on; the same object until one changes. */
  skillsOf(id: string): Promise<SkillSnapshot>;
  promptFor(
    run: Pick<ToolRun, 'agentId' | 'role' | 'skills'>,
    scene: PromptScene,
  ): Promise<readonly SystemBlock[]>;
}

export type PromptScene = {
  readonly chatKind: 'dm' | 'group';
  readonly tools: readonly NamedTool[];
  /** Replaces what the agent's files and profile say. */
  readonly prompt?: string | undefined;
};

type Agent = {
  readonly settings: AgentSettings;
  readonly files: BootstrapFiles;
  readonly skills: Skills;
  /** Prompts by their inputs other than files and skills: one per kind of run. */
  readonly prompts: Map<string, Prompt>;
};

type Prompt = {
  readonly files: readonly PromptFile[];
  readonly skills: string | undefined;
  readonly blocks: readonly SystemBlock[];
};

/** Creates the configured agents. */
export function createAgents(
  config: Pick<Config, 'agents' | 'defaultAgent' | 'dataDir'>,
  { log, hooks }: { readonly log: Log; readonly hooks?: Hooks },
): Agents {
  const agents = new Map<string, Agent>();
  for (const settings of config.agents) {
    const { workspace, skills: allow } = settings;
    const files = createBootstrapFiles({ workspace });
    const places = { dataDir: config.dataDir, workspace };
    const skills = createSkills({ ...places, log, ...(allow && { allow }) });
    agents.set(settings.id, { settings, files, skills, prompts: new Map() });
  }
  const find = (id: string): Agent => {
    const agent = agents.get(id) ?? agents.get(config.defaultAgent);
    if (!agent) throw new RangeError(`agent ${config.defaultAgent} is not configured`);
    return agent;
  };
  return {
    settingsOf: (id) => find(id).settings,
    skillsOf: (id) => find(id).skills.current(),
    promptFor: async (run, { chatKind, tools, prompt }) => {
      const { settings, prompts, ...agent } = find(run.agentId);
      const { id, name, profile } = settings;
      const mode = run.role ? 'minimal' : 'full';
      const build = (files: readonly PromptFile[], instructions: string | undefined) =>
        buildSystemPrompt({
          mode,
          agent: { id, name, ...(instructions !== undefined && { instructions }) },
          tools,
          skills: run.skills?.skills ?? [],
          files,
          chat: chatKind === 'dm' ? 'direct' : 'group',
        });
      // Keeps Parley's own rules for tools and untrusted text.
      if (prompt !== undefined) return build([], prompt);
      const files = await hookedFiles(hooks, run, await agent.files.read());
      const kind = [mode, chatKind, ...tools.map(({ name }) => name)].join(' ');
      const known = prompts.get(kind);
      const skills = run.skills?.id;
      if (known?.files === files && known.skills === skills) return known.blocks;
      const blocks = build(files, profile);
      prompts.set(kind, { files, skills, blocks });
      return blocks;
    },
  };
}

async function hookedFiles(
  hooks: Hooks | undefined,
  { agentId, role }: Pick<ToolRun, 'agentId' | 'role'>,
  files: readonly PromptFile[],
): Promise<readonly PromptFile[]> {
  if (!hooks?.has('agent_bootstrap')) return files;
  const isSubagent = role !== undefined;
  return (await hooks.decide('agent_bootstrap', { agentId, isSubagent, files })).event.files;
}

/** How answers are shown on a channel. */
export type Display = Required<DisplayChoice> & {
  readonly stream: StreamMode;
  readonly blocks: Config['replies']['blocks'];
  /** The reaction on a message while it is answered. */
  readonly ackReaction?: string;
};

/** Returns how answers are shown on a channel by the configuration. */
function displayOn({ channels, ...replies }: Config['replies'], channel: string): Display {
  const { stream, verbose, reasoning, blocks, ackReaction } = replies;
  const own = Object.hasOwn(channels, channel) ? channels[channel] : undefined;
  return { stream, verbose, reasoning, blocks, ...(ackReaction !== undefined && { ackReaction }), ...own };
}

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
  /** Returns how answers are shown on a channel, unless a conversation has chosen otherwise. */
  displayOn(channel: string): Display;
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
    displayOn: (channel) => displayOn(replies, channel),
    // The rest of the deadline is for the checkpoint and for closing.
    handOverMs: Math.max(0, shutdownMs - 5_000),
  };
}

/** Returns the marks for messages that runs take; undefined where none is set. */
export function marksFrom(
  { kind, channels, merged, read }: MarkSettings,
  known: readonly { readonly id: string; readonly localPeer?: string | undefined }[],
): MarkSettings | undefined {
  const isOff = [kind, ...Object.values(channels)].every((one) => one === 'off');
  if (isOff || (merged === '' && read === '')) return undefined;
  // Page and terminal show by themselves what becomes of a message.
  const local = known.flatMap(({ id, localPeer }) => (localPeer === undefined ? [] : [[id, 'off'] as const]));
  return { kind, merged, read, channels: { ...channels, ...Object.fromEntries(local) } };
}
