<?xml version="1.0" encoding="UTF-8"?>
<!-- OPML 1.0 and 2.0 as RDF: the list, its groups, and the feeds and pages that it names. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
    xmlns:rss="http://purl.org/rss/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:dcterms="http://purl.org/dc/terms/"
    exclude-result-prefixes="ql">
  <xsl:param name="url"/>

  <xsl:template match="/">
    <rdf:RDF>
      <rdf:Description rdf:about="{$url}">
        <xsl:if test="normalize-space(opml/head/title)">
          <dcterms:title><xsl:value-of select="normalize-space(opml/head/title)"/></dcterms:title>
        </xsl:if>
        <xsl:if test="normalize-space(opml/head/ownerName)">
          <dc:creator><xsl:value-of select="normalize-space(opml/head/ownerName)"/></dc:creator>
        </xsl:if>
        <xsl:if test="ql:date-time(opml/head/dateModified)">
          <dcterms:modified rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">
            <xsl:value-of select="ql:date-time(opml/head/dateModified)"/>
          </dcterms:modified>
        </xsl:if>
        <xsl:for-each select="//outline[@xmlUrl or @htmlUrl or @url]">
          <dcterms:hasPart rdf:resource="{ql:resolve((@xmlUrl | (@url | @htmlUrl)[not(../@xmlUrl)])[1], $url)}"/>
        </xsl:for-each>
      </rdf:Description>
      <xsl:apply-templates select="//outline[@xmlUrl or @htmlUrl or @url]"/>
    </rdf:RDF>
  </xsl:template>

  <xsl:template match="outline">
    <rdf:Description rdf:about="{ql:resolve((@xmlUrl | (@url | @htmlUrl)[not(../@xmlUrl)])[1], $url)}">
      <xsl:if test="@xmlUrl"><rdf:type rdf:resource="http://purl.org/rss/1.0/channel"/></xsl:if>
      <xsl:choose>
        <xsl:when test="normalize-space(@title)"><rss:title><xsl:value-of select="normalize-space(@title)"/></rss:title></xsl:when>
        <xsl:when test="normalize-space(@text)"><rss:title><xsl:value-of select="normalize-space(@text)"/></rss:title></xsl:when>
      </xsl:choose>
      <xsl:if test="normalize-space(@description)">
        <rss:description><xsl:value-of select="ql:plain(@description)"/></rss:description>
      </xsl:if>
      <xsl:if test="@xmlUrl and @htmlUrl"><rss:link rdf:resource="{ql:resolve(@htmlUrl, $url)}"/></xsl:if>
      <xsl:if test="@language"><dc:language><xsl:value-of select="@language"/></dc:language></xsl:if>
      <xsl:for-each select="ancestor::outline[not(@xmlUrl or @htmlUrl or @url)][1]">
        <dc:subject><xsl:value-of select="normalize-space(@text)"/></dc:subject>
      </xsl:for-each>
    </rdf:Description>
  </xsl:template>
</xsl:stylesheet>
