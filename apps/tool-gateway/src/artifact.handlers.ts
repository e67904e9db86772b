import { Answers, type Call } from '@ambit/bus';
import { toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { ArtifactService } from './artifact.service.js';

@Controller()
export class ArtifactHandlers {
  constructor(@Inject(ArtifactService) private readonly artifacts: ArtifactService) {}

  @Answers(toolGateway.readArtifact)
  read(
    input: Parsed<typeof toolGateway.readArtifact>,
    call: Call<typeof toolGateway.readArtifact>,
  ): Promise<Output<typeof toolGateway.readArtifact>> {
    return this.artifacts.readForRun(input, call);
  }

  @Answers(toolGateway.writeArtifact)
  write(
    input: Parsed<typeof toolGateway.writeArtifact>,
    call: Call<typeof toolGateway.writeArtifact>,
  ): Promise<Output<typeof toolGateway.writeArtifact>> {
    return this.artifacts.write(input, call);
  }

  @Answers(toolGateway.getArtifact)
  get(input: Parsed<typeof toolGateway.getArtifact>): Promise<Output<typeof toolGateway.getArtifact>> {
    return this.artifacts.read(input);
  }
}
