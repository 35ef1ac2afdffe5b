FROM python:3.11-slim

WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY hooks hooks
COPY migrations migrations
COPY service service
COPY workers workers
RUN pip install --no-cache-dir . \
 && useradd --system --uid 10001 --home-dir /data gapless \
 && install --directory --mode 0700 --owner gapless --group gapless /data

USER gapless
ENV GAPLESS_HOME=/data
VOLUME /data
EXPOSE 47700
ENTRYPOINT ["python", "-I", "-m", "service.cli"]
CMD ["serve"]
