import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { AuthorizationHandlers } from './authorization/authorization.handlers.js';
import { AuthorizationService } from './authorization/authorization.service.js';
import { Challenges } from './authorization/challenges.service.js';
import { Clients } from './authorization/clients.service.js';
import { CredentialRepository } from './authorization/credential.repository.js';
import { FlowRepository } from './authorization/flow.repository.js';
import { FlowService } from './authorization/flow.service.js';
import { Grants } from './authorization/grants.service.js';
import { Tokens } from './authorization/tokens.service.js';
import { CatalogueService } from './catalogue.service.js';
import { ContentHandlers } from './content.handlers.js';
import { ContentService } from './content.service.js';
import { DiscoveryService } from './discovery.service.js';
import { Epochs } from './epochs.js';
import { HeldToolHandlers } from './held-tool.handlers.js';
import { HeldToolRepository } from './held-tool.repository.js';
import { HeldToolService } from './held-tool.service.js';
import { InstanceHandlers } from './instance.handlers.js';
import { InstanceService } from './instance.service.js';
import { KnownServers } from './known-servers.service.js';
import { OfferRepository } from './offer.repository.js';
import { OfferService } from './offer.service.js';
import { RunScopes } from './run-scope.service.js';
import { SecretHandlers } from './secret.handlers.js';
import { SecretRepository } from './secret.repository.js';
import { SecretResolver } from './secret.resolver.js';
import { SecretService } from './secret.service.js';
import { ResealingRepository } from './resealing.repository.js';
import { Resealing } from './resealing.service.js';
import { Sealer } from './sealer.js';
import { ServerSkillService } from './server-skill.service.js';
import { ServerHandlers } from './server.handlers.js';
import { ServerRepository } from './server.repository.js';
import { ServerService } from './server.service.js';
import { SkillDiscovery } from './skill-discovery.service.js';
import { SkillSwitch } from './skill-switch.service.js';
import { SkillHandlers } from './skill.handlers.js';
import { SwitchRepository } from './switch.repository.js';

@Module({
  controllers: [
    AuditHandlers,
    AuthorizationHandlers,
    ServerHandlers,
    HeldToolHandlers,
    SecretHandlers,
    InstanceHandlers,
    ContentHandlers,
    SkillHandlers,
  ],
  providers: [
    ServerService,
    ServerRepository,
    HeldToolRepository,
    HeldToolService,
    CatalogueService,
    InstanceService,
    KnownServers,
    DiscoveryService,
    Epochs,
    SecretService,
    SecretResolver,
    SecretRepository,
    OfferRepository,
    OfferService,
    RunScopes,
    ContentService,
    Sealer,
    Resealing,
    ResealingRepository,
    AuthorizationService,
    FlowService,
    FlowRepository,
    CredentialRepository,
    Challenges,
    Clients,
    Grants,
    Tokens,
    SwitchRepository,
    SkillDiscovery,
    SkillSwitch,
    ServerSkillService,
  ],
})
export class McpBrokerModule {}
