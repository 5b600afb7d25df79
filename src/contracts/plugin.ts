import type { z } from 'zod';
import type { ChannelDefinition } from './channel.ts';
import type { HookRegistry } from './hook.ts';
import type { Log } from './log.ts';
import type {
  PluginAccepted,
  PluginAgent,
  PluginCommand,
  PluginItem,
  PluginProviderFactory,
  PluginRoute,
} from './plugin-parts.ts';
import type { PluginStore } from './plugin-store.ts';
import type { SkillReader } from './skill.ts';
import type { SettleCall, ToolFactory } from './tool.ts';
import type { DiskCalls, WorkspaceReader, WorkspaceWriter } from './workspace-reader.ts';

/** The export `plugin` of a plugin folder's `index.ts`. */
export interface PluginDefinition<Config = unknown> {
  readonly id: string;
  readonly configSchema: z.ZodType<Config>;
  /** Registers what the plugin provides; returns a disposer. Has 10 s: a plugin that takes longer stays off. */
  setup(api: PluginApi, config: Config): Disposer | Promise<Disposer>;
  /**
   * Tries whether the machine has what the plugin's tools need; undefined if they need nothing. Until it has, and if it
   * has failed, no run gets the tools. It is called beside the start, and by `doctor`; a rejection is a failure.
   */
  check?(api: Pick<PluginApi, 'disks'>, config: Config): Promise<PluginFinding | undefined>;
}

/** The result of a plugin's check, for `doctor` and the status table. It contains no secrets. */
export type PluginFinding = {
  readonly result: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  /** The owner's next step. */
  readonly fix?: string;
};

/** Releases what a plugin opened; called once, when it is changed or removed or Parley stops, after its running calls. */
export type Disposer = () => void | Promise<void>;

/** The plugin API. Everything is registered in setup; later calls of `register`, `on` and `every` throw. */
export interface PluginApi {
  readonly log: Log;
  readonly tools: {
    /**
     * Provides one tool. The name is declared here, before any run calls the factory, so that two plugins
     * with the same tool are caught at the start. The factory's tools have that name.
     */
    register(name: string, factory: ToolFactory): void;
  };
  /** Calls functions at fixed moments, as docs/hooks.md lists them. */
  readonly hooks: HookRegistry;
  /** Makes file calls on workspaces, so that a disk that is gone holds up nothing else. */
  readonly disks: DiskCalls;
  /**
   * Lets the gateway's own tools read workspace files, and Parley write those that show its tasks. Only one plugin may
   * serve them, in its setup.
   */
  readonly workspaces: { serve(reader: WorkspaceReader, writer?: WorkspaceWriter): void };
  /** Reads the skills of a run, exactly as they were accepted. */
  readonly skills: SkillReader;
  readonly commands: { register(command: PluginCommand): void };
  /** Provides a network, in a channel definition as those in channels/. Its id is the plugin's. */
  readonly channels: {
    register(channel: ChannelDefinition, settings?: Readonly<Record<string, unknown>>): void;
  };
  /** Provides models. The configuration names them `<name>/<model>`, and the provider as `{ "kind": "plugin" }`. */
  readonly providers: { register(name: string, create: PluginProviderFactory): void };
  readonly routes: { register(route: PluginRoute): void };
  readonly schedules: {
    /**
     * Calls the handler every so often (at least every second) while this process runs, one call at a time. Nothing is
     * made up for after a restart, and each process that has loaded the plugin calls it.
     */
    every(
      name: string,
      options: { readonly everyMs: number },
      handler: (signal: AbortSignal) => void | Promise<void>,
    ): void;
  };
  /** The plugin's own values. */
  readonly store: PluginStore;
  readonly agent: PluginAgent;
  /** Puts a message into an agent's session, once under its key, and doesn't wait for the answer. */
  enqueue(item: PluginItem): Promise<PluginAccepted>;
  /** Aborts when the plugin ends: it was changed or removed, and its running calls are over, or Parley stops. */
  readonly signal: AbortSignal;
  /** Settles a parked call of one of its tools, including one from before a restart. */
  readonly settle: SettleCall;
}
