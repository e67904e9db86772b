import type { Command } from 'commander';
import type { Context } from '../context.js';
import { addAgentCommands } from './agent.commands.js';
import { addAuditCommands } from './audit.commands.js';
import { addCallCommands } from './call.commands.js';
import { addEdgeTokenCommands } from './edge-token.commands.js';
import { addExportCommand } from './export.commands.js';
import { addGetCommand } from './get.commands.js';
import { addInteractionCommands } from './interaction.commands.js';
import { addManifestCommands } from './manifest.commands.js';
import { addNotifyCommands } from './notify.commands.js';
import { addPluginCommands } from './plugin.commands.js';
import { addPrincipalCommands } from './principal.commands.js';
import { addPublisherCommands } from './publisher.commands.js';
import { addRunCommands } from './run.commands.js';
import { addSecretCommands } from './secret.commands.js';
import { addServerCommands } from './server.commands.js';
import { addSessionCommands } from './session.commands.js';
import { addSkillCommands } from './skill.commands.js';
import { addSnapshotCommands } from './snapshot.commands.js';
import { addStatusCommand } from './status.commands.js';
import { addSwitchCommand } from './switch.commands.js';
import { addTokenCommands } from './token.commands.js';
import { addWorkerCommands } from './worker.commands.js';

/** Every command, in the order that help shows them. */
export function addCommands(program: Command, context: Context): void {
  for (const add of [
    addStatusCommand,
    addManifestCommands,
    addExportCommand,
    addGetCommand,
    addRunCommands,
    addSessionCommands,
    addInteractionCommands,
    addSnapshotCommands,
    addAuditCommands,
    addCallCommands,
    addServerCommands,
    addPluginCommands,
    addPublisherCommands,
    addNotifyCommands,
    addSkillCommands,
    addAgentCommands,
    addSecretCommands,
    addSwitchCommand,
    addTokenCommands,
    addEdgeTokenCommands,
    addPrincipalCommands,
    addWorkerCommands,
  ])
    add(program, context);
}
