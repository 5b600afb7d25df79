/** Hands one plugin the API, and collects what it registers. */
import type { ChannelDefinition } from '#contracts/channel.ts';
import type { Log } from '#contracts/log.ts';
import type { PluginApi } from '#contracts/plugin.ts';
import type { PluginCommand, PluginProviderFactory, PluginRoute } from '#contracts/plugin-parts.ts';
import type { SkillReader } from '#contracts/skill.ts';
import type { SettleCall, ToolFactory } from '#contracts/tool.ts';
import type { WorkspaceReader, WorkspaceWriter } from '#contracts/workspace-reader.ts';
import { assertHookName, type Hooks } from '../hooks/hooks.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';
import { ownChannel, ownProvider, ownServices } from './own-parts.ts';
import type { PluginCode } from './plugin-code.ts';

/** The services that are made for each plugin, by its id. */
export type PluginServices = (plugin: string) => Pick<PluginApi, 'store' | 'agent' | 'enqueue'>;

export type Registration = { readonly plugin: string; readonly name: string; readonly factory: ToolFactory };

/** A channel, and the settings for its own schema. */
export type RegisteredChannel = {
  readonly definition: ChannelDefinition;
  readonly settings: Readonly<Record<string, unknown>>;
};

export type Schedule = {
  readonly name: string;
  readonly everyMs: number;
  readonly handler: (signal: AbortSignal) => void | Promise<void>;
};

/** Everything that a plugin has registered. */
export type PluginParts = {
  readonly tools: Registration[];
  readonly commands: PluginCommand[];
  readonly channels: RegisteredChannel[];
  readonly providers: { readonly name: string; readonly create: PluginProviderFactory }[];
  readonly routes: PluginRoute[];
  readonly schedules: Schedule[];
  /** Add its hooks; each returns the function that removes it. */
  readonly hooks: (() => () => void)[];
  reader: WorkspaceReader | undefined;
  writer: WorkspaceWriter | undefined;
};

export type PluginScope = {
  readonly plugin: string;
  readonly code: PluginCode;
  readonly api: PluginApi;
  readonly parts: PluginParts;
  /** From here on nothing can be registered. */
  endSetup(): void;
  /** Puts its hooks into force. */
  begin(): void;
  /** Removes its hooks and ends its schedules. Its running calls may end. */
  withdraw(): void;
  /** Aborts the plugin's signal; withdraws it first. */
  end(): void;
  /** Aborts when it is withdrawn. */
  readonly withdrawn: AbortSignal;
};

export type ScopeDeps = {
  readonly log: Log;
  readonly settle: SettleCall;
  readonly hooks: Pick<Hooks, 'on'>;
  readonly services: PluginServices;
  readonly skills: SkillReader;
  readonly code: PluginCode;
};

/** Creates the scope of one plugin. */
export function createPluginScope(
  plugin: string,
  { log, settle, hooks, services, skills, code }: ScopeDeps,
): PluginScope {
  const [withdrawing, ending] = [new AbortController(), new AbortController()];
  const removals: (() => void)[] = [];
  const parts: PluginParts = {
    ...{ tools: [], commands: [], channels: [], providers: [], routes: [], schedules: [], hooks: [] },
    reader: undefined,
    writer: undefined,
  };
  let isSettingUp = true;
  const during = (what: string) => {
    if (!isSettingUp) throw new Error(`${what} was registered after setup; do it in setup`);
  };
  const withdraw = () => {
    withdrawing.abort();
    for (const remove of removals.splice(0)) remove();
  };
  const api: PluginApi = {
    ...ownServices({ ...services(plugin), settle }, code),
    ...{ disks: workspaceDisks, log, skills, signal: ending.signal },
    hooks: {
      on(name, handler, options) {
        during(`hook "${name}"`);
        assertHookName(name);
        // A handler is called like a function of two parameters, whichever hook it is for.
        const call = (...args: readonly unknown[]) => code.run(() => Reflect.apply(handler, undefined, args));
        parts.hooks.push(() => hooks.on(name, call as typeof handler, { ...options, owner: plugin }));
      },
    },
    workspaces: {
      serve(reader, writer) {
        parts.reader = reader;
        parts.writer = writer;
      },
    },
    ...registrars({ plugin, parts, during, code }),
  };
  return {
    ...{ plugin, code, api, parts, withdraw, withdrawn: withdrawing.signal },
    endSetup: () => {
      isSettingUp = false;
    },
    begin: () => {
      for (const add of parts.hooks) removals.push(add());
    },
    end: () => {
      withdraw();
      ending.abort();
    },
  };
}

type RegistrarDeps = Pick<PluginScope, 'plugin' | 'parts' | 'code'> & {
  /** Throws once the setup is over. */
  readonly during: (what: string) => void;
};

/** Returns the parts of the API that only collect. What they collect runs as the plugin's. */
function registrars({
  plugin,
  parts,
  during,
  code,
}: RegistrarDeps): Pick<PluginApi, 'tools' | 'commands' | 'channels' | 'providers' | 'routes' | 'schedules'> {
  return {
    tools: {
      register(name, factory) {
        during(`tool "${name}"`);
        parts.tools.push({ plugin, name, factory });
      },
    },
    commands: {
      register(command) {
        during(`command "${command.name}"`);
        assertCommand(command);
        parts.commands.push({ ...command, run: async (call) => code.run(async () => command.run(call)) });
      },
    },
    channels: {
      register(definition, settings = {}) {
        during(`channel "${definition.id}"`);
        if (definition.id !== plugin)
          throw new Error(
            `the channel is named "${definition.id}"; a plugin's channel has the plugin's name`,
          );
        parts.channels.push({ definition: ownChannel(definition, code), settings });
      },
    },
    providers: {
      register(name, create) {
        during(`provider "${name}"`);
        parts.providers.push({ name, create: ownProvider(create, code) });
      },
    },
    routes: {
      register(route) {
        during(`route "${route.path}"`);
        if (!/^[a-z0-9][a-z0-9._/-]{0,99}$/.test(route.path))
          throw new Error(`"${route.path}" isn't a path below /plugins/${plugin}/`);
        parts.routes.push({
          ...route,
          handle: async (request) => code.run(async () => route.handle(request)),
        });
      },
    },
    schedules: {
      every(name, { everyMs }, handler) {
        during(`schedule "${name}"`);
        if (!Number.isInteger(everyMs) || everyMs < 1000 || everyMs > 86_400_000)
          throw new Error(`schedule "${name}": everyMs is a whole number from 1000 to 86400000`);
        parts.schedules.push({ name, everyMs, handler: (signal) => code.run(async () => handler(signal)) });
      },
    },
  };
}

function assertCommand({ name, description, right, run }: PluginCommand): void {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name))
    throw new Error(`"${name}" isn't a command: use small letters, digits and underscores`);
  if (typeof description !== 'string' || description.length < 3 || description.length > 100)
    throw new Error(`command "${name}" needs a description of 3 to 100 characters`);
  if (right !== undefined && !['anyone', 'admins', 'owner'].includes(right))
    throw new Error(`command "${name}": right is anyone, admins or owner`);
  if (typeof run !== 'function') throw new Error(`command "${name}" has no function run`);
}
